"""Reads traces in this process, one after the other: nothing to install, no process to start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.measure import summarize
from pytest_ldos.fleet.request import Request
from pytest_ldos.fleet.summary import TraceSummary
from pytest_ldos.trace.execution.build_windows import Spread


@dataclass(frozen=True)
class InProcess:
    """See `Scheduler`."""

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        return (summarize(each, request) for each in traces)

    def spreading(self) -> AbstractContextManager[Spread | None]:
        return nullcontext()
