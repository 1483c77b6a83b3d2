"""Conversion between NumPy, where rows are computed, and Polars, where they are kept.

While a table is computed, "none" is -1 in a column of ids and `NEVER` in a column of times;
in a frame both are null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution.schema import Schema

IdArray = npt.NDArray[np.signedinteger[Any]]
"""Row numbers of a table, -1 where there is none; shape ``(n,)``."""

TimesNs = npt.NDArray[np.int64]
"""Nanoseconds since the epoch; shape ``(n,)``."""

NEVER: Final = np.iinfo(np.int64).min

Values = npt.NDArray[Any] | Sequence[Any] | pl.Series


def frame_of(schema: Schema, columns: Mapping[str, Any]) -> pl.DataFrame:
    """Table of the schema from arrays, sequences or series; an `id` that is not given counts the rows.

    Raises:
        KeyError: a column of the schema is missing.
    """
    rows = len(next(iter(columns.values())))
    given = {"id": np.arange(rows, dtype=np.int32), **columns} if "id" in schema else columns
    return pl.DataFrame([_series(name, kind, given[name]) for name, kind in schema.items()])


def _series(name: str, kind: type[pl.DataType], values: Values) -> pl.Series:
    if not isinstance(values, np.ndarray):
        return pl.Series(name, values, dtype=None if kind is pl.List else kind)
    series = pl.Series(name, values)
    if kind is pl.Int32:
        return _null_where(series, values < 0).cast(kind)
    if kind is pl.Int64 and values.dtype == np.int64:
        return _null_where(series, values == NEVER)
    return series.cast(kind)


def _null_where(series: pl.Series, absent: npt.NDArray[np.bool_]) -> pl.Series:
    if not absent.any():
        return series
    present = pl.when(~pl.Series(absent)).then(pl.col(series.name))
    return series.to_frame().select(present.alias(series.name)).to_series()


def ids_of(frame: pl.DataFrame, name: str) -> IdArray:
    """Column of ids with -1 for null."""
    return frame[name].fill_null(-1).to_numpy()


def times_of(frame: pl.DataFrame, name: str) -> TimesNs:
    """Column of times with `NEVER` for null."""
    return frame[name].fill_null(NEVER).to_numpy()


def pick(values: npt.NDArray[Any], rows: npt.NDArray[Any], otherwise: int) -> npt.NDArray[Any]:
    """``values[rows]``, and `otherwise` where a row is -1."""
    if len(values) == 0:
        return np.full(len(rows), otherwise, dtype=values.dtype)
    picked: npt.NDArray[Any] = np.where(rows >= 0, values[rows], values.dtype.type(otherwise))
    return picked
