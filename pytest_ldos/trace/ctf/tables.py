"""Decoded events as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import polars as pl

Int64Array = npt.NDArray[np.int64]
NumberArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Label:
    """One name of an enumeration, for the values from `first` to `last`."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, kw_only=True)
class Column:
    """One field of all events of a name.

    Attributes:
        values: numbers, one a row; for text, codes into `dictionary`; for lists of one
            length, shape ``(rows, length)``; for lists of varying length, all elements.
        dictionary: the distinct strings, for text columns; ``None`` for numbers.
        offsets: for lists of varying length, row ``i`` is
            ``values[offsets[i]:offsets[i + 1]]``; shape ``(rows + 1,)``.
        valid: one bool a row, false where the event had no such field; ``None`` where
            every row has a value.
        labels: the names an enumeration gives to its values.
    """

    name: str
    values: NumberArray
    dictionary: tuple[str, ...] | None = None
    offsets: Int64Array | None = None
    valid: npt.NDArray[np.bool_] | None = None
    labels: tuple[Label, ...] = ()

    def __len__(self) -> int:
        return len(self.values) if self.offsets is None else len(self.offsets) - 1

    def __getitem__(self, row: int) -> Any:
        """The value of one row as a Python object, ``None`` where it is missing."""
        if self.valid is not None and not self.valid[row]:
            return None
        if self.offsets is not None:
            return self.values[self.offsets[row] : self.offsets[row + 1]].tolist()
        value = self.values[row].tolist()
        return value if self.dictionary is None else self.dictionary[value]

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def texts(self) -> npt.NDArray[np.object_]:
        """Strings of a text column, one a row; missing rows are ``None``."""
        if self.dictionary is None:
            raise TypeError(f"column {self.name!r} holds numbers, not text")
        words = np.array([*self.dictionary, None], dtype=object)
        codes = self.values if self.valid is None else np.where(self.valid, self.values, len(words) - 1)
        return words[codes]


@dataclass(frozen=True)
class EventTable:
    """All events of one name, in time order.

    Attributes:
        name: as in the trace, e.g. ``ros2:callback_start``.
        timestamp_ns: nanoseconds since the epoch (the trace's clock plus its offset), as
            babeltrace2 rounds them; 0 where the trace has no clock (`TraceInfo.clock`).
        cpu_id: the CPU that wrote the event, -1 where the trace does not say.
        trace: index into `DecodedTrace.traces`.
        columns: contexts (``vpid``, ``vtid``, …) and payload by name; a payload field with
            the name of a context gets the prefix ``payload_``.
    """

    name: str
    timestamp_ns: Int64Array
    cpu_id: npt.NDArray[np.int32]
    trace: npt.NDArray[np.uint32]
    columns: Mapping[str, Column] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.timestamp_ns)

    def __getitem__(self, name: str) -> NumberArray:
        """Numbers of a column (codes, for text)."""
        return self.columns[name].values

    def frame(self) -> pl.DataFrame:
        """The table as a Polars frame; text as ``Categorical``, lists as ``List``."""
        import polars as pl  # noqa: PLC0415 - most users of a table need no frames

        series = [pl.Series("timestamp_ns", self.timestamp_ns), pl.Series("cpu_id", self.cpu_id)]
        series += [_to_series(column) for column in self.columns.values()]
        return pl.DataFrame(series)


def _to_series(column: Column) -> pl.Series:
    import polars as pl  # noqa: PLC0415

    if column.dictionary is not None:
        return pl.Series(column.name, column.texts().tolist(), dtype=pl.String).cast(pl.Categorical)
    if column.offsets is not None or column.valid is not None:
        return pl.Series(column.name, list(column))
    return pl.Series(column.name, column.values)
