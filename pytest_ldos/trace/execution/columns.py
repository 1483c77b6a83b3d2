"""Conversion between NumPy, where rows are computed, and Polars, where they are kept.

While a table is computed, "none" is -1 in a column of ids and `NEVER` in a column of times;
in a frame both are null. Long columns are mapped from files on either side (`execution.mapped`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Column over the memory of an array; Polars itself copies what has nulls."""
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
    """``values[rows]``, and `otherwise` where a row is -1."""
    if len(values) == 0:
        return np.full(len(rows), otherwise, dtype=values.dtype)
    picked: npt.NDArray[Any] = np.where(rows >= 0, values[rows], values.dtype.type(otherwise))
    return picked
