"""Reads one trace after the other in this process: nothing to install, no process to start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.measure import summarize
from pytest_ldos.fleet.request import Request
from pytest_ldos.fleet.summary import TraceSummary


@dataclass(frozen=True)
class InProcess:
    """See `Scheduler`."""

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        return (summarize(each, request) for each in traces)
