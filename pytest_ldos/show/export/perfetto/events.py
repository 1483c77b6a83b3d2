"""Track events as columns: slices, instants and counters of many tracks, merged into one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.show.export.perfetto.fields import EventType

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[Any]

_NESTED_BITS: Final = 56

_TYPES: Final[Mapping[str, type[np.generic]]] = {
    "kind": np.uint8,
    "track": np.uint64,
    "name": np.uint32,
    "category": np.uint8,
    "value": np.int64,
    "argument": np.uint32,
    "text": np.uint32,
    "key": np.int64,
}


@dataclass(frozen=True)
class Events:
    """Track events; all arrays have the same length.

    Attributes:
        time_ns: nanoseconds since the epoch.
        order: breaks ties of time, so that slices nest and flows start at their origin.
        kind: one of `EventType`.
        track: the track's uuid.
        name, category: numbers of interned texts, 0 for none.
        value: of counters.
        argument, text: numbers of the interned name and text of an argument, 0 for none.
        key: referenced by flows; -1 for events without flows.
    """

    time_ns: Ints
    order: Ints
    kind: Numbers
    track: Numbers
    name: Numbers
    category: Numbers
    value: Numbers
    argument: Numbers
    text: Numbers
    key: Ints

    def __len__(self) -> int:
        return len(self.time_ns)

    def take(self, rows: Numbers | slice) -> Events:
        return Events(*(getattr(self, field.name)[rows] for field in fields(self)))


class _Rank:
    """Order of simultaneous events."""

    SENT = 0
    RECEIVED = 1
    SLICE_END = 2
    EMPTY_SLICE = 3
    SLICE_BEGIN = 4
    COUNTED = 5


def slices(
    begin_ns: Numbers,
    end_ns: Numbers,
    *,
    track: Numbers | int,
    name: Numbers,
    category: int,
    argument: Numbers | int = 0,
    text: Numbers | int = 0,
    key: Numbers | int = -1,
) -> Events:
    """A begin and an end for each slice; slices of one track must nest."""
    outer_first = np.lexsort((-end_ns, begin_ns))
    depth = np.empty(len(begin_ns), dtype=np.int64)
    depth[outer_first] = np.arange(len(begin_ns))
    is_empty = begin_ns == end_ns
    in_order = np.where(is_empty, _ranked(_Rank.EMPTY_SLICE, 2 * depth), _ranked(_Rank.SLICE_BEGIN, depth))
    out_order = np.where(is_empty, _ranked(_Rank.EMPTY_SLICE, 2 * depth + 1), _ranked(_Rank.SLICE_END, -depth))
    argument = np.where(np.broadcast_to(text, begin_ns.shape), argument, 0)
    described: dict[str, Numbers | int] = {"name": name, "category": category, "argument": argument, "text": text}
    begins = _events(begin_ns, in_order, EventType.SLICE_BEGIN, track=track, key=key, **described)
    ends = _events(end_ns, out_order, EventType.SLICE_END, track=track)
    return join([begins, ends])


def instants(
    time_ns: Numbers, *, track: Numbers, name: Numbers, category: int, key: Numbers, is_reception: bool
) -> Events:
    """Instants on tracks; of simultaneous ones, sent messages come before received ones."""
    rank = np.full(len(time_ns), _ranked(_Rank.RECEIVED if is_reception else _Rank.SENT, np.int64(0)))
    return _events(time_ns, rank, EventType.INSTANT, track=track, name=name, category=category, key=key)


def counts(time_ns: Numbers, values: Numbers, *, track: int) -> Events:
    """Values of a counter track."""
    rank = np.full(len(time_ns), _ranked(_Rank.COUNTED, np.int64(0)))
    return _events(time_ns, rank, EventType.COUNTER, track=track, value=values)


def join(parts: Sequence[Events]) -> Events:
    return Events(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Events)))


def in_order(events: Events) -> Events:
    """Ordered by time, and by `order` where times are equal."""
    return events.take(np.lexsort((events.order, events.time_ns)))


def _ranked(rank: int, nested: Any) -> Any:
    return (rank << _NESTED_BITS) + nested


def _events(time_ns: Numbers, order: Numbers, kind: EventType, **columns: Numbers | int) -> Events:
    """Events of one kind; columns that are not given are empty."""
    given = {"kind": kind, "name": 0, "category": 0, "value": 0, "argument": 0, "text": 0, "key": -1} | columns
    return Events(
        time_ns=time_ns.astype(np.int64),
        order=order.astype(np.int64),
        **{
            name: np.broadcast_to(np.asarray(given[name], dtype=dtype), time_ns.shape) for name, dtype in _TYPES.items()
        },
    )
