"""Events in the form of ROS 2's `tracetools_read`: one dict each, in time order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any, Final, overload

import numpy as np

from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable, Label

DictEvent = dict[str, Any]

_LEFT_OUT: Final = frozenset(
    {
        "content_size",
        "events_discarded",
        "id",
        "packet_size",
        "packet_seq_num",
        "stream_id",
        "stream_instance_id",
        "timestamp_end",
        "timestamp_begin",
        "magic",
        "uuid",
        "v",
    }
)
_COLLIDING: Final = "payload_"
_EVENTS_AT_ONCE: Final = 1 << 16


def to_tracetools_events(trace: DecodedTrace) -> Sequence[DictEvent]:
    """All events of a trace in `tracetools_read`'s form, for code written for it.

    Each is a dict with ``_name``, ``_timestamp`` (nanoseconds since the epoch), ``cpu_id``, the
    contexts (``vpid``, ``vtid``, ``procname``, …) and the payload, all at the top level: numbers,
    text, lists; enumerations by the name of their value. As there, a payload field with the name of a context replaces
    it, fields called ``id``, ``uuid``, ``v``, … (which packets and headers have) are left out, and missing fields are
    not keys of the dict.

    Dicts are made on demand, a chunk at a time: iterating over a trace of any size
    takes little memory. Simultaneous events are in the order of their names in the trace.

    Reference: ros2_tracing (Jazzy), ``tracetools_read.trace.get_trace_events``.
    """
    return _Events(trace)


class _Events(Sequence[DictEvent]):
    def __init__(self, trace: DecodedTrace) -> None:
        self._tables = [table for table in trace.events.values() if len(table)]

    def __len__(self) -> int:
        return sum(len(table) for table in self._tables)

    def __iter__(self) -> Iterator[DictEvent]:
        of_event, _ = self._order
        reached = [0] * len(self._tables)
        for begin in range(0, len(of_event), _EVENTS_AT_ONCE):
            tables = of_event[begin : begin + _EVENTS_AT_ONCE]
            counts = np.bincount(tables, minlength=len(self._tables)).tolist()
            rows = [
                _dicts(table, slice(first, first + count))
                for table, first, count in zip(self._tables, reached, counts, strict=True)
            ]
            yield from (next(rows[table]) for table in tables.tolist())
            reached = [first + count for first, count in zip(reached, counts, strict=True)]

    @overload
    def __getitem__(self, index: int) -> DictEvent: ...

    @overload
    def __getitem__(self, index: slice) -> list[DictEvent]: ...

    def __getitem__(self, index: int | slice) -> DictEvent | list[DictEvent]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        of_event, row_of_event = self._order
        row = int(row_of_event[index])
        return next(_dicts(self._tables[of_event[index]], slice(row, row + 1)))

    @cached_property
    def _order(self) -> tuple[np.ndarray[Any, np.dtype[np.uint32]], np.ndarray[Any, np.dtype[np.int64]]]:
        """Table and row of each event; the rows of each table are already in order."""
        lengths = [len(table) for table in self._tables]
        times = np.concatenate([np.empty(0, dtype=np.int64), *(table.timestamp_ns for table in self._tables)])
        order = np.argsort(times, kind="stable")
        tables = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)[order]
        return tables, np.concatenate([np.empty(0, dtype=np.int64), *map(np.arange, lengths)])[order]


def _dicts(table: EventTable, rows: slice) -> Iterator[DictEvent]:
    names = ["_name", "_timestamp"]
    values: list[Iterator[Any]] = [repeat(table.name), iter(table.timestamp_ns[rows].tolist())]
    sparse = []
    for name, column in _fields(table).items():
        names.append(name)
        values.append(iter(_values(column, rows)))
        if column.valid is not None:
            sparse.append(name)
    for row in zip(*values, strict=False):
        event = dict(zip(names, row, strict=True))
        for name in sparse:
            if event[name] is None:
                del event[name]
        yield event


def _fields(table: EventTable) -> dict[str, Column]:
    """Columns by their name in `tracetools_read`."""
    cpu = Column(name="cpu_id", values=table.cpu_id, valid=None if np.all(table.cpu_id >= 0) else table.cpu_id >= 0)
    fields = {"cpu_id": cpu, **table.columns}
    for name in table.columns:
        bare = name.removeprefix(_COLLIDING)
        if bare != name and bare in fields:
            fields[bare] = fields.pop(name)
    return {name: column for name, column in fields.items() if name not in _LEFT_OUT}


def _values(column: Column, rows: slice) -> list[Any]:
    """Values of some rows as Python objects, ``None`` if they are missing."""
    if column.offsets is not None:
        edges = column.offsets[rows.start : rows.stop + 1].tolist()
        whole = column.values[edges[0] : edges[-1]].tolist()
        found = [whole[begin - edges[0] : end - edges[0]] for begin, end in pairwise(edges)]
    else:
        found = column.values[rows].tolist()
    if column.dictionary is not None:
        words = column.dictionary
        found = [words[code] if 0 <= code < len(words) else None for code in found]
    elif column.labels:
        found = [_label(value, column.labels) for value in found]
    if column.valid is not None:
        found = [value if given else None for value, given in zip(found, column.valid[rows].tolist(), strict=True)]
    return found


def _label(value: Any, labels: Sequence[Label]) -> Any:
    return next((label.name for label in labels if label.first <= value <= label.last), value)
