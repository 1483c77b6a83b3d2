"""Conversion between NumPy and Polars, and long arrays: mapped, sorted and grouped by chunks.

Arrays with an element per event of a trace are computed here chunk by chunk, so that memory does not grow with the
trace. Short arrays are ordinary memory.

While a table is computed, "none" is -1 in a column of ids and `NEVER` in a column of times;
in a frame both are null. Long columns are memory-mapped files in both.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.files import writing
from pytest_ldos.trace.execution import _states
from pytest_ldos.trace.execution.model import Schema

Array = npt.NDArray[Any]

CHUNK_ROWS = 1 << 20

MOST_BYTES = 4 << 20  # arrays above this size are mapped
_LARGE_FILES: Final = Path("/var/tmp")  # noqa: S108 - every file there is made without a name
"""Folder of large temporary files; ``/tmp`` may be in memory (systemd's ``file-hierarchy(7)``)."""


def chunks(rows: int) -> Iterator[slice]:
    for first in range(0, rows, CHUNK_ROWS):
        yield slice(first, min(first + CHUNK_ROWS, rows))


def room_for(rows: int, dtype: npt.DTypeLike) -> Array:
    """A writable array of zeros; raises `NotWritten` if the disk for temporary files is full."""
    kind = np.dtype(dtype)
    size = rows * kind.itemsize
    if size <= MOST_BYTES:
        return np.zeros(rows, dtype=kind)
    with writing(temporary_folder(), needs=size), tempfile.TemporaryFile(dir=temporary_folder()) as file:
        os.posix_fallocate(file.fileno(), 0, size)  # else a write to a full disk would kill the process (SIGBUS)
        return np.asarray(np.memmap(file, dtype=kind, mode="r+"))


def filled(rows: int, dtype: npt.DTypeLike, value: int) -> Array:
    array = room_for(rows, dtype)
    array.fill(value)
    return array


class Growing:
    """An array that grows at its end; see `room_for`. Text stays in memory."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._kind = np.dtype(dtype)
        self._parts: list[Array] = []
        self._file: IO[bytes] | None = None
        self.rows = 0

    def add(self, values: Array) -> None:
        self._parts.append(np.ascontiguousarray(values, dtype=self._kind))
        self.rows += len(values)
        if self.rows * self._kind.itemsize > MOST_BYTES and not self._kind.hasobject:
            self._write()

    def insert(self, rows: Array, values: Array) -> None:
        """Inserts each value before a row; the rows ascend. All from the first of them on is moved."""
        ends = [*rows[1:].tolist(), self.rows]
        self.add(values)
        whole = self.so_far()
        for shift, (begin, end) in reversed([*enumerate(zip(rows.tolist(), ends, strict=False), 1)]):
            for last in range(end, begin, -CHUNK_ROWS):
                first = max(begin, last - CHUNK_ROWS)
                whole[first + shift : last + shift] = whole[first:last].copy()
            whole[begin + shift - 1] = values[shift - 1]
        self._parts = [] if self._file else [whole]

    def so_far(self) -> Array:
        """The array: that of a file itself, or a copy."""
        if self._file is None:
            return np.concatenate([np.empty(0, dtype=self._kind), *self._parts])
        self._write()
        return np.asarray(np.memmap(self._file, dtype=self._kind, mode="r+"))

    def finish(self) -> Array:
        """The whole array, which is writable; nothing can be added afterwards."""
        whole = self.so_far()
        if self._file:
            self._file.close()
        return whole

    def _write(self) -> None:
        with writing(temporary_folder()):
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=temporary_folder())  # noqa: SIM115 - until `finish`
            for part in self._parts:
                self._file.write(part.data)
            self._file.flush()
        self._parts.clear()


def computed(rows: int, dtype: npt.DTypeLike, part_of: Callable[[slice], Array]) -> Array:
    """An array that is computed chunk by chunk; see `room_for`."""
    found = Growing(dtype)
    for part in chunks(rows):
        found.add(part_of(part))  # written, as a new page of a mapped file costs far more
    return found.finish()


def growing(**kinds: npt.DTypeLike) -> dict[str, Growing]:
    return {name: Growing(kind) for name, kind in kinds.items()}


def rows_where(rows: int, is_wanted: Callable[[slice], Array]) -> IdArray:
    """Rows of which a flag, computed chunk by chunk, is true."""
    found = Growing(np.int32)
    for part in chunks(rows):
        found.add(np.flatnonzero(is_wanted(part)) + part.start)
    return found.finish()


def temporary_folder() -> Path:
    """Folder of temporary files: ``TMPDIR``, or the folder for large ones."""
    if not os.environ.get("TMPDIR") and os.access(_LARGE_FILES, os.W_OK | os.X_OK):
        return _LARGE_FILES
    return Path(tempfile.gettempdir())


IdArray = npt.NDArray[np.signedinteger[Any]]  # row numbers of a table, -1 where there is none; shape ``(n,)``
TimesNs = npt.NDArray[np.int64]  # nanoseconds since the epoch; shape ``(n,)``
NEVER: Final = np.iinfo(np.int64).min

Columns = dict[str, npt.NDArray[Any]]  # columns by name, as in the schema of their table

Values = npt.NDArray[Any] | Sequence[Any] | pl.Series
Kind = type[pl.DataType] | pl.DataType
Table = TypeVar("Table", pl.DataFrame, pl.Series)


def joined(parts: Sequence[Columns]) -> Columns:
    """Rows of several parts of a table with `time_ns`, one part after the other; perhaps the only part itself."""
    some = [part for part in parts if len(part["time_ns"])] or parts[:1]
    return {name: np.concatenate([part[name] for part in some]) for name in some[0]} if some[1:] else some[0]


def in_time_order(parts: Sequence[Columns]) -> Columns:
    columns = joined(parts)
    if (columns["time_ns"][1:] >= columns["time_ns"][:-1]).all():
        return columns
    order = np.argsort(columns["time_ns"], kind="stable")
    return {name: values[order] for name, values in columns.items()}


def frame_of(schema: Schema, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Table of the schema from arrays, sequences or series; an `id` that is not given counts the rows."""
    rows = len(next(iter(columns.values())))
    if "id" in schema and "id" not in columns:
        columns = {"id": computed(rows, np.int32, lambda part: np.arange(part.start, part.stop)), **columns}
    return pl.DataFrame([_series(name, kind, columns[name]) for name, kind in schema.items()])


def _series(name: str, kind: Kind, values: Values) -> pl.Series:
    if kind is pl.String and isinstance(values, np.ndarray):
        values = values.tolist()
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
    present = computed(len(values), np.bool_, lambda part: values[part] >= least)
    if present.all():
        return pl.Series(name, values)
    if values.nbytes > MOST_BYTES:  # such a column shares the array's memory; Polars itself copies arrays with nulls
        import nanoarrow  # noqa: PLC0415 - only for long traces

        kind = nanoarrow.int32() if values.dtype == np.int32 else nanoarrow.int64()
        buffers = [np.packbits(present, bitorder="little"), values]
        return pl.Series(nanoarrow.c_array_from_buffers(kind, len(values), buffers)).alias(name)
    return pl.Series(name, values).set(pl.Series(~present), None)


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


def rows_of(table: Table, part: slice) -> Table:
    """Consecutive rows of a table or a column, which are not copied."""
    return table.slice(part.start, part.stop - part.start)


def distinct_where(table: pl.DataFrame, name: str, wanted: pl.Expr) -> list[int]:
    """Distinct values of a column in the wanted rows."""
    parts = (rows_of(table, part).filter(wanted)[name].unique() for part in chunks(len(table)))
    return list(set[int]().union(*parts))


def _without_nulls(column: pl.Series, otherwise: int) -> Array:
    if not column.null_count():
        return column.to_numpy()
    array = room_for(len(column), np.int32 if column.dtype == pl.Int32 else np.int64)
    for part in chunks(len(column)):
        array[part] = rows_of(column, part).fill_null(otherwise).to_numpy()
    return array


def pick(values: npt.NDArray[Any], rows: npt.NDArray[Any], otherwise: int) -> npt.NDArray[Any]:
    """``values[rows]``, with `otherwise` for rows of -1."""
    if len(values) == 0:
        return np.full(len(rows), otherwise, dtype=values.dtype)
    picked: npt.NDArray[Any] = values.take(rows, axis=0)
    np.putmask(picked, rows < 0, values.dtype.type(otherwise))
    return picked


_NARROW: Final = 1 << 16  # keys below this are sorted as 16-bit numbers, which is several times faster


def narrow(keys: Array) -> Array:
    """The same order of keys that are not negative, in the type that is sorted fastest."""
    return keys.astype(np.uint16) if len(keys) and keys.max() < _NARROW else keys


@dataclass(frozen=True)
class Index:
    """Rows of a table, ordered by key; `first` is the position of each key's first row, then the total."""

    first: npt.NDArray[np.int64]
    rows: IdArray

    def of(self, keys: Array) -> tuple[npt.NDArray[np.int64], IdArray]:
        """Rows of the given keys: position in `keys`, and row."""
        first = self.first[keys]
        count = self.first[keys + 1] - first
        which = np.repeat(np.arange(len(keys)), count)
        return which, self.rows[first[which] + ranks(count)]


def ranks(counts: Array) -> Array:
    """0 to count - 1 for each count, one after the other."""
    found: Array = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return found


def index_by(keys: Array, count: int) -> Index:
    """The rows of each key below `count`; rows with a key of -1 are left out."""
    first = room_for(count + 1, np.int64)
    for part in chunks(len(keys)):
        _, distinct, lengths = _in_order(keys[part], count)
        first[distinct + 1] += lengths
    np.cumsum(first, out=first)
    rows = room_for(int(first[-1]), np.int32)
    following = computed(count, np.int64, lambda part: first[part])
    for part in chunks(len(keys)):
        order, distinct, lengths = _in_order(keys[part], count)
        rows[np.repeat(following[distinct], lengths) + ranks(lengths)] = order + part.start
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


_SAMPLES: Final = 64  # sampled values per border between buckets of about half a chunk


def sorted_rows(values: Array) -> IdArray:
    """Rows sorted by value, stably; shape as `values`."""
    if len(values) <= CHUNK_ROWS:
        return np.argsort(values, kind="stable").astype(np.int32)
    parts = 2 * len(values) // CHUNK_ROWS + 1
    sample = np.sort(values[:: max(len(values) // (parts * _SAMPLES), 1)])
    borders = np.unique(sample[:: max(len(sample) // parts, 1)][1:])
    bucket = computed(len(values), np.int32, lambda part: np.searchsorted(borders, values[part], side="right"))
    index = index_by(bucket, len(borders) + 1)
    for begin, end in zip(index.first[:-1].tolist(), index.first[1:].tolist(), strict=True):
        rows = index.rows[begin:end]
        rows[:] = rows[np.argsort(values[rows], kind="stable")]
    return index.rows


class Grouped:
    """Values by group, for statistics that need a whole group at once; those of group -1 are left out."""

    def __init__(self, groups: Array, values: Array, count: int) -> None:
        index = index_by(groups, count)
        self._first = index.first
        self._values = computed(len(index.rows), values.dtype, lambda part: values[index.rows[part]])

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        return np.diff(self._first)

    def of(self, group: int) -> Array:
        """Values of a group; in table order until one of the methods below is called."""
        return self._values[int(self._first[group]) : int(self._first[group + 1])]

    def nearest(self, shares: Sequence[float]) -> list[list[float | None]]:
        """Nearest-rank quantiles of each group; ``None`` for an empty group."""
        found: list[list[float | None]] = []
        for values in map(self.of, range(len(self.sizes))):
            places = [int((len(values) - 1) * share + 0.5) for share in shares]
            if len(values):
                values.partition(sorted(set(places)))
            found.append([float(values[place]) if len(values) else None for place in places])
        return found

    def medians(self) -> list[float | None]:
        """Median of each group; ``None`` for an empty group."""
        found: list[float | None] = []
        for values in map(self.of, range(len(self.sizes))):
            low, high = (len(values) - 1) // 2, len(values) // 2
            if len(values):
                values.partition(sorted({low, high}))
            found.append((float(values[low]) + float(values[high])) / 2 if len(values) else None)
        return found

    def distinct(self) -> list[int]:
        """Number of distinct values of each group."""
        found = []
        for values in map(self.of, range(len(self.sizes))):
            values.sort()
            parts = (values[part.start : part.stop + 1] for part in chunks(len(values)))
            found.append(sum(int(np.count_nonzero(np.diff(part))) for part in parts) + min(len(values), 1))
        return found


def distinct_rows(*columns: Any) -> Array:
    """Distinct combinations of integers, in order; shape ``(n, columns)``."""
    found = np.empty((0, len(columns)), dtype=np.int64)
    for part in chunks(len(columns[0])):
        values = [np.asarray(column[part]) for column in columns]
        first, _ = _states.distinct(values)
        new = np.stack([each[first].astype(np.int64) for each in values], axis=1)
        found = np.unique(np.concatenate((found, new)), axis=0)
    return found
