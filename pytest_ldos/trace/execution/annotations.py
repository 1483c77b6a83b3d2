"""Indirect causal links annotated by an application itself.

Tracepoints: ``message_link_periodic_async``, ``message_link_partial_sync``: rcl handles of
subscriptions whose messages are used for the publications of the given publishers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from pytest_ldos.base.tracepoints import Ros2
from pytest_ldos.trace.execution.columns import frame_of
from pytest_ldos.trace.execution.endpoints import Endpoints
from pytest_ldos.trace.execution.observed import Events, Observed
from pytest_ldos.trace.execution.registry import Registry
from pytest_ldos.trace.execution.schema import ENTITIES

PERIODIC_ASYNC: Final = "periodic_async"
PARTIAL_SYNC: Final = "partial_sync"

_RULES: Final = {Ros2.LINK_PERIODIC_ASYNC: PERIODIC_ASYNC, Ros2.LINK_PARTIAL_SYNC: PARTIAL_SYNC}


def build_link_annotations(observed: Observed, endpoints: Endpoints) -> tuple[pl.DataFrame, int]:
    """One row per annotation, with lists of ids; and the number of unknown handles in the annotations."""
    rows: dict[str, list[Any]] = {"rule": [], "process": [], "time_ns": [], "subscriptions": [], "publishers": []}
    unknown = 0
    for name, rule in _RULES.items():
        events = observed.events(name)
        rows["rule"] += [rule] * len(events)
        rows["process"] += events.process.tolist()
        rows["time_ns"] += events.times_ns.tolist()
        for column, field, registry in (
            ("subscriptions", "subs", endpoints.subscriptions_by_rcl),
            ("publishers", "pubs", endpoints.publishers_by_rcl),
        ):
            ids = _ids(events, field, registry)
            unknown += sum(each < 0 for some in ids for each in some)
            rows[column] += [[each for each in some if each >= 0] for some in ids]
    lists: dict[str, Any] = {
        name: pl.Series(name, rows.pop(name), dtype=pl.List(pl.Int32)) for name in ("subscriptions", "publishers")
    }
    return frame_of(ENTITIES["link_annotations"], rows | lists), unknown


def _ids(events: Events, name: str, registry: Registry) -> list[list[int]]:
    found = []
    for process, time_ns, handles in zip(events.process, events.times_ns, events.lists(name), strict=True):
        some = np.array(handles, dtype=np.uint64)
        ids = registry.find(np.full(len(some), process), some, np.full(len(some), time_ns))
        found.append(ids.tolist())
    return found
