"""Recorded events of a trace, by name and fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.trace.assertions.evidence import Evidence, suggested
from pytest_ldos.trace.assertions.happenings import Happening
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.ctf.tables import Column, EventTable

_MOST_SHOWN = 5


@dataclass(frozen=True)
class RawEvent(Happening):
    """See `event`."""

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def describe(self, *, many: bool) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{'events' if many else 'event'} {self.name}{f' with {given}' if given else ''}"

    def find(self, seen: Evidence) -> pl.DataFrame:
        __tracebackhide__ = True
        table = self._table(seen)
        chosen = np.ones(len(table), dtype=np.bool_)
        for name, value in self.fields.items():
            chosen &= _equal(table.columns[name], value)
        frame = table.frame().filter(pl.Series(chosen))
        return frame.rename({"timestamp_ns": "time_ns"})

    def instead(self, seen: Evidence) -> Iterable[str]:
        table = self._table(seen)
        if not len(table):
            yield "it was recorded, but never happened"
            return
        yield f"{len(table)} events of this name in all"
        for name in self.fields:
            values = Counter(str(value) for value in table.columns[name])
            listed = ", ".join(f"{value} ({count})" for value, count in values.most_common(_MOST_SHOWN))
            yield f"{name} is {listed}{', …' if len(values) > _MOST_SHOWN else ''}"

    def _table(self, seen: Evidence) -> EventTable:
        __tracebackhide__ = True
        events = _trace_of(seen).events
        if self.name not in events:
            known = sorted(events)
            near = suggested(self.name, known)
            seen.fail(f"expected {self.describe(many=True)}, but the trace has no event of this name", (near,))
        table = events[self.name]
        for name in self.fields:
            if name not in table.columns:
                near = suggested(name, list(table.columns))
                seen.fail(f"expected {self.describe(many=True)}, but {self.name} has no field {name}", (near,))
        return table


def event(name: str, /, **fields: Any) -> RawEvent:
    """A recorded event: ``event("ros2:rcl_publisher_init", topic_name="/chatter")``.

    Args:
        fields: fields of the payload and contexts (``vpid``, ``vtid``, ``procname``), each with its required value.
    """
    return RawEvent(name, fields)


def _trace_of(seen: Evidence) -> DecodedTrace:
    if seen.trace is None:
        raise ConfigurationError("a model holds no raw events", remedy="give the assertion the trace instead")
    return seen.trace


def _equal(column: Column, value: Any) -> npt.NDArray[np.bool_]:
    """True for each row that has the value."""
    if column.offsets is None and column.values.ndim == 1 and column.dictionary is None and not column.labels:
        same = np.asarray(column.values == value, dtype=np.bool_)
        same = same if same.shape == column.values.shape else np.zeros(len(column), dtype=np.bool_)
        return same if column.valid is None else same & column.valid
    return np.fromiter((each == value for each in column), dtype=np.bool_, count=len(column))
