"""Interface of the schedulers that read traces: in this process, in several here, or on other machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.request import Request
from pytest_ldos.fleet.summary import TraceSummary
from pytest_ldos.trace.execution.build_windows import Spread


class Scheduler(Protocol):
    """Reads and summarises traces."""

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        """Yields one summary per trace, in order of completion. Closing the iterator cancels the remaining work.

        Raises:
            Unavailable: the workers cannot be reached, or cannot read the traces.
        """

    def spreading(self) -> AbstractContextManager[Spread | None]:
        """Reads the windows of one trace by the workers; ``None`` if this process reads them.

        Raises:
            Unavailable: the workers cannot be reached, or cannot read the trace.
        """
