"""Interface of the schedulers that read many traces: in this process, in several here, or on other machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.request import Request
from pytest_ldos.fleet.summary import TraceSummary


class Scheduler(Protocol):
    """Reads and summarises traces."""

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        """Yields one summary per trace, in order of completion. Closing the iterator cancels the remaining work.

        Raises:
            Unavailable: the workers cannot be reached, or cannot read the traces.
        """
