"""Conversion between NumPy and Polars, and sorting and grouping by chunks.

While a table is computed, "none" is -1 in a column of ids and `NEVER` in a column of times;
in a frame both are null. Long columns are memory-mapped files in both (`execution.mapped`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution import mapped
from pytest_ldos.trace.execution.mapped import Array, chunks, computed, room_for
from pytest_ldos.trace.execution.schema import Schema

IdArray = npt.NDArray[np.signedinteger[Any]]
"""Row numbers of a table, -1 where there is none; shape ``(n,)``."""

TimesNs = npt.NDArray[np.int64]
"""Nanoseconds since the epoch; shape ``(n,)``."""

NEVER: Final = np.iinfo(np.int64).min

Values = npt.NDArray[Any] | Sequence[Any] | pl.Series
Kind = type[pl.DataType] | pl.DataType


def frame_of(schema: Schema, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Table of the schema from arrays, sequences or series; an `id` that is not given counts the rows.

    Raises:
        KeyError: a column of the schema is missing.
    """
    rows = len(next(iter(columns.values())))
    given = {"id": row_numbers(rows), **columns} if "id" in schema else columns
    return pl.DataFrame([_series(name, kind, given[name]) for name, kind in schema.items()])


def row_numbers(rows: int) -> IdArray:
    """Numbers of rows, from 0."""
    return computed(rows, np.int32, lambda part: np.arange(part.start, part.stop, dtype=np.int32))


def _series(name: str, kind: Kind, values: Values) -> pl.Series:
    if not isinstance(values, np.ndarray):
        return pl.Series(name, values, dtype=None if kind is pl.List else kind)
    if isinstance(kind, pl.Enum):
        return pl.Series(name, kind.categories, dtype=kind).gather(values)
    if kind is pl.Int32:
        return _with_nulls(name, values.astype(np.int32, copy=False), 0)
    if kind is pl.Int64 and values.dtype == np.int64:
        return _with_nulls(name, values, NEVER + 1)
    return pl.Series(name, values).cast(kind)


def _with_nulls(name: str, values: Array, least: int) -> pl.Series:
    """Column with null where a value is below `least`."""
    present = computed(len(values), np.bool_, lambda part: values[part] >= least)
    if present.all():
        return pl.Series(name, values)
    if values.nbytes > mapped.MOST_BYTES:
        return _mapped_with_nulls(name, values, present)
    kept = pl.when(pl.Series(present)).then(pl.col(name))
    return pl.Series(name, values).to_frame().select(kept.alias(name)).to_series()


def _mapped_with_nulls(name: str, values: Array, present: Array) -> pl.Series:
    """Column that shares an array's memory; Polars itself copies arrays with nulls."""
    import nanoarrow  # noqa: PLC0415 - only for long traces

    kind = nanoarrow.int32() if values.dtype == np.int32 else nanoarrow.int64()
    buffers = [np.packbits(present, bitorder="little"), values]
    return pl.Series(nanoarrow.c_array_from_buffers(kind, len(values), buffers)).alias(name)


def ids_of(frame: pl.DataFrame, name: str) -> IdArray:
    """Column of ids with -1 for null."""
    return _without_nulls(frame[name], -1)


def times_of(frame: pl.DataFrame, name: str) -> TimesNs:
    """Column of times with `NEVER` for null."""
    return _without_nulls(frame[name], NEVER)


def ids_at(frame: pl.DataFrame, name: str, rows: Array) -> IdArray:
    """Column of ids in some rows, with -1 for null."""
    return frame[name].gather(rows).fill_null(-1).to_numpy()


def times_at(frame: pl.DataFrame, name: str, rows: Array) -> TimesNs:
    """Column of times in some rows, with `NEVER` for null."""
    return frame[name].gather(rows).fill_null(NEVER).to_numpy()


def rows_of(frame: pl.DataFrame, part: slice) -> pl.DataFrame:
    """Consecutive rows of a table, which are not copied."""
    return frame.slice(part.start, part.stop - part.start)


def _without_nulls(column: pl.Series, otherwise: int) -> Array:
    if not column.null_count():
        return column.to_numpy()
    array = room_for(len(column), np.int32 if column.dtype == pl.Int32 else np.int64)
    for part in chunks(len(column)):
        array[part] = column.slice(part.start, part.stop - part.start).fill_null(otherwise).to_numpy()
    return array


def pick(values: npt.NDArray[Any], rows: npt.NDArray[Any], otherwise: int) -> npt.NDArray[Any]:
    """``values[rows]``, with `otherwise` for rows of -1."""
    if len(values) == 0:
        return np.full(len(rows), otherwise, dtype=values.dtype)
    picked: npt.NDArray[Any] = np.where(rows >= 0, values[rows], values.dtype.type(otherwise))
    return picked


_NARROW: Final = 1 << 16
"""Keys below this are sorted as 16-bit numbers, which is several times faster."""


@dataclass(frozen=True)
class Index:
    """Rows of a table by a key.

    Attributes:
        first: position of the first row of each key, then the total; shape ``(keys + 1,)``.
        rows: ordered by key, then by position in the table.
    """

    first: npt.NDArray[np.int64]
    rows: IdArray

    def __len__(self) -> int:
        return len(self.first) - 1

    def of(self, keys: Array) -> tuple[npt.NDArray[np.int64], IdArray]:
        """Rows of the given keys: position in `keys`, and row."""
        first = self.first[keys]
        count = self.first[keys + 1] - first
        which = np.repeat(np.arange(len(keys)), count)
        within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        return which, self.rows[first[which] + within]


def index_by(keys: Array, count: int) -> Index:
    """The rows of each key.

    Args:
        keys: below `count`; rows with a key of -1 are left out.
    """
    first = room_for(count + 1, np.int64)
    for part in chunks(len(keys)):
        _, distinct, lengths = _in_order(keys[part], count)
        first[distinct + 1] += lengths
    np.cumsum(first, out=first)
    rows = room_for(int(first[-1]), np.int32)
    following = computed(count, np.int64, lambda part: first[part])
    for part in chunks(len(keys)):
        order, distinct, lengths = _in_order(keys[part], count)
        within = np.arange(len(order)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows[np.repeat(following[distinct], lengths) + within] = order + part.start
        following[distinct] += lengths
    return Index(first, rows)


def _in_order(keys: Array, count: int) -> tuple[Array, Array, Array]:
    """Rows ordered by key, the keys that occur, and the number of rows of each."""
    narrow = keys.astype(np.int16) if count < _NARROW // 2 else keys
    order = np.argsort(narrow, kind="stable")
    sorted_keys = keys[order]
    absent = int(np.searchsorted(sorted_keys, 0))
    order, sorted_keys = order[absent:], sorted_keys[absent:]
    begins = np.flatnonzero(np.diff(sorted_keys, prepend=-1))
    return order, sorted_keys[begins], np.diff(begins, append=len(order))


def sorted_rows(values: Array) -> IdArray:
    """Rows sorted by value, stably; shape as `values`."""
    if len(values) <= mapped.CHUNK_ROWS:
        return np.argsort(values, kind="stable").astype(np.int32)
    borders = _borders(values)
    bucket = computed(len(values), np.int32, lambda part: np.searchsorted(borders, values[part], side="right"))
    index = index_by(bucket, len(borders) + 1)
    for begin, end in zip(index.first[:-1].tolist(), index.first[1:].tolist(), strict=True):
        rows = index.rows[begin:end]
        rows[:] = rows[np.argsort(values[rows], kind="stable")]
    return index.rows


_SAMPLES: Final = 64
"""Sampled values per border between buckets."""


def _borders(values: Array) -> Array:
    """Values that divide a long array into parts of about half a chunk."""
    parts = 2 * len(values) // mapped.CHUNK_ROWS + 1
    sample = np.sort(values[:: max(len(values) // (parts * _SAMPLES), 1)])
    return np.unique(sample[:: max(len(sample) // parts, 1)][1:])


class Grouped:
    """Values by group, for statistics that need a whole group at once.

    Args:
        groups: group of each number, -1 for numbers that are left out.
    """

    def __init__(self, groups: Array, values: Array, count: int) -> None:
        index = index_by(groups, count)
        self._first = index.first
        self._values = computed(len(index.rows), values.dtype, lambda part: values[index.rows[part]])

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of values of each group."""
        return np.diff(self._first)

    def of(self, group: int) -> Array:
        """Values of a group; in table order until one of the methods below is called."""
        found: Array = self._values[int(self._first[group]) : int(self._first[group + 1])]
        return found

    def nearest(self, shares: Sequence[float]) -> list[list[float | None]]:
        """Nearest-rank quantiles of each group; ``None`` for an empty group."""
        return [self._nearest(group, shares) for group in range(len(self.sizes))]

    def medians(self) -> list[float | None]:
        """Median of each group; ``None`` for an empty group."""
        return [self._median(self.of(group)) for group in range(len(self.sizes))]

    def distinct(self) -> list[int]:
        """Number of distinct values of each group."""
        return [self._distinct(self.of(group)) for group in range(len(self.sizes))]

    def _nearest(self, group: int, shares: Sequence[float]) -> list[float | None]:
        values = self.of(group)
        if not len(values):
            return [None] * len(shares)
        places = [int((len(values) - 1) * share + 0.5) for share in shares]
        values.partition(sorted(set(places)))
        return [float(values[place]) for place in places]

    @staticmethod
    def _median(values: Array) -> float | None:
        if not len(values):
            return None
        low, high = (len(values) - 1) // 2, len(values) // 2
        values.partition(sorted({low, high}))
        return (float(values[low]) + float(values[high])) / 2

    @staticmethod
    def _distinct(values: Array) -> int:
        values.sort()
        parts = (values[part.start : part.stop + 1] for part in chunks(len(values)))
        return sum(int(np.count_nonzero(np.diff(part))) for part in parts) + min(len(values), 1)


def distinct_rows(*columns: Any) -> Array:
    """Distinct combinations of integers, in order; shape ``(n, columns)``."""
    found = np.empty((0, len(columns)), dtype=np.int64)
    for part in chunks(len(columns[0])):
        new = np.stack([np.asarray(column[part]).astype(np.int64) for column in columns], axis=1)
        found = np.unique(np.concatenate((found, _without_repeats(new))), axis=0)
    return found


def _without_repeats(rows: Array) -> Array:
    """Removes most repeated rows by sorting one number per row."""
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    changes = (ordered[1:] != ordered[:-1]).any(axis=1)
    kept: Array = ordered[np.concatenate(([True], changes))[: len(ordered)]]
    return kept
