"""Flow arrows from a publication to each of its receptions, and on to the callback that ran with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_ldos.show.export.perfetto.content import Keys
from pytest_ldos.trace.execution.columns import NEVER, ids_of, times_of
from pytest_ldos.trace.flow.graph import FlowGraph


@dataclass(frozen=True)
class Flows:
    """Flows of some events.

    Attributes:
        number: from 1 on; shape ``(events, most of one event)``.
        present: True for the numbers that the event has; same shape.
    """

    number: npt.NDArray[np.uint64]
    present: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Arrows:
    """Flows that touch each event.

    Attributes:
        first: index of the first flow of an event, by its key (see `Keys`); shape ``(keys + 1,)``.
        flow: the flows' numbers.
    """

    first: npt.NDArray[np.int64]
    flow: npt.NDArray[np.uint64]

    def of_events(self, keys: npt.NDArray[np.int64]) -> Flows:
        """Flows by key; key -1 has none."""
        first = self.first[keys]
        count = np.where(keys >= 0, self.first[keys + 1] - first, 0)
        column = np.arange(int(count.max(initial=0)))
        present = column < count[:, np.newaxis]
        return Flows(self.flow[np.where(present, first[:, np.newaxis] + column, 0)], present)


def draw_arrows(flow: FlowGraph | None, keys: Keys) -> Arrows:
    """One flow per transport link; links and runs that would lead back in time have none.

    A callback that took its message itself began before the message came; its arrow ends at the
    reception, which lies within the callback run.
    """
    if flow is None:
        return Arrows(np.zeros(keys.count + 1, dtype=np.int64), np.empty(0, dtype=np.uint64))
    publication, take, number = _forward_links(flow)
    run = _runs_of_takes(flow)[take] if len(flow.model.takes) else take
    key = np.concatenate((keys.publications(publication), keys.takes(take), keys.runs(run[run >= 0])))
    number = np.concatenate((number, number, number[run >= 0]))
    order = np.lexsort((number, key))
    return Arrows(np.searchsorted(key[order], np.arange(keys.count + 1)), number[order])


def _forward_links(flow: FlowGraph) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.uint64]]:
    publication, take = ids_of(flow.transport, "publication"), ids_of(flow.transport, "take")
    sent, taken = times_of(flow.model.publications, "time_ns"), times_of(flow.model.takes, "time_ns")
    forward = (sent[publication] != NEVER) & (sent[publication] <= taken[take])
    publication, take = publication[forward], take[forward]
    return publication, take, np.arange(1, len(take) + 1, dtype=np.uint64)


def _runs_of_takes(flow: FlowGraph) -> npt.NDArray[np.int64]:
    """The callback run that each take triggered, -1 for none."""
    found = np.full(len(flow.model.takes), -1, dtype=np.int64)
    take, run = ids_of(flow.triggers, "take"), ids_of(flow.triggers, "callback_run")
    taken, start = times_of(flow.model.takes, "time_ns"), times_of(flow.model.callback_runs, "start_ns")
    forward = taken[take] <= start[run]
    found[take[forward]] = run[forward]
    return found
