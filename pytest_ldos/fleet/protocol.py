"""What reads many traces: in this process, in several here, or on other machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from pytest_ldos.fleet.find import Found
from pytest_ldos.fleet.request import Request
from pytest_ldos.fleet.summary import TraceSummary


class Scheduler(Protocol):
    """Reads traces somewhere."""

    def summarize(self, traces: Sequence[Found], request: Request) -> Iterator[TraceSummary]:
        """One summary a trace, in the order in which they are finished; closing it ends what was begun.

        Raises:
            Unavailable: who should read them cannot be reached, or could not read them.
        """
