"""Tables of a decoded trace, reduced to the processes one wants to observe."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from pytest_ldos.ctf.read import DecodedTrace
from pytest_ldos.ctf.tables import EventTable

Rows = npt.NDArray[np.intp]


class Observed:
    """The events of some processes.

    Args:
        pids: of the processes; ``None`` for all in the trace.
    """

    def __init__(self, trace: DecodedTrace, pids: Collection[int] | None) -> None:
        self._trace = trace
        self._pids = None if pids is None else np.array(sorted(pids))

    def table(self, name: str) -> EventTable | None:
        """The whole table of an event, or ``None`` where the trace declares no such event."""
        return self._trace.events.get(name)

    def rows(self, table: EventTable) -> Rows:
        """Row numbers of the observed processes' events."""
        if self._pids is None or "vpid" not in table.columns:
            return np.arange(len(table))
        return np.flatnonzero(np.isin(table["vpid"], self._pids))
