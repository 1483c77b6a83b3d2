"""Tables of a model that are made part by part, in the order of time.

Their columns lie in mapped files where they are long; those with text lie in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.trace.execution.columns import IdArray, TimesNs, frame_of, ids_of, times_of
from pytest_ldos.trace.execution.mapped import Growing, chunks, room_for
from pytest_ldos.trace.execution.schema import INSTANCES

OWNERS: Final = {
    "publications": ("publisher", "publishers"),
    "takes": ("subscription", "subscriptions"),
    "enqueues": ("subscription", "subscriptions"),
    "callback_runs": ("callback", "callbacks"),
}
"""Columns that may name an entity that no init event names."""

Numbers = npt.NDArray[Any]


class Parts:
    """Parts of one table, and what is found out later of their rows.

    Raises:
        NotWritten: by any method, the disk for temporary files is full.
    """

    def __init__(self, table: str) -> None:
        self._table = table
        self._schema = {name: kind for name, kind in INSTANCES[table].items() if name != "id"}
        self._numbers: dict[str, Growing] = {}
        self._texts: dict[str, list[pl.Series]] = {name: [] for name, kind in self._schema.items() if kind is pl.String}
        self._late: list[pl.DataFrame] = []
        self._ends: list[tuple[IdArray, TimesNs]] = []
        self.rows = 0

    def add(self, frame: pl.DataFrame, *, since_ns: int) -> None:
        """Adds the next part.

        Args:
            since_ns: begin of its window; rows before it, of tables with a `time_ns`, are put where their time is.
        """
        if "time_ns" in self._schema:
            is_late = frame["time_ns"] < since_ns
            if is_late.any():
                self._late.append(_copied(frame.filter(is_late)))
                frame = frame.filter(~is_late)
        for name in self._schema:
            if name in self._texts:
                self._texts[name].append(frame[name])
                continue
            values = _numbers(frame, name)
            self._numbers.setdefault(name, Growing(values.dtype)).add(values)
        self.rows += len(frame)

    def end(self, rows: IdArray, end_ns: TimesNs) -> None:
        """Notes the `end_ns` of earlier rows."""
        if len(rows):
            self._ends.append((rows, end_ns.copy()))

    def finish(self, renumbered: Mapping[str, IdArray | None]) -> pl.DataFrame:
        """The whole table.

        Args:
            renumbered: new numbers of entities by table; ``None`` where all are the same.
        """
        columns: dict[str, Any] = {name: growing.finish() for name, growing in self._numbers.items()}
        columns |= {name: pl.concat(parts) for name, parts in self._texts.items()}
        for rows, end_ns in self._ends:
            columns["end_ns"][rows] = end_ns
        if self._late:
            columns = _with_late(columns, pl.concat(self._late).sort("time_ns", maintain_order=True))
        column, owner = OWNERS.get(self._table, ("", ""))
        numbers = renumbered.get(owner)
        if numbers is not None:
            for part in chunks(len(columns[column])):
                columns[column][part] = numbers[columns[column][part]]
        return frame_of(INSTANCES[self._table], columns)


def _copied(frame: pl.DataFrame) -> pl.DataFrame:
    """A few rows without the table that they came from, which Polars keeps where they lie side by side."""
    return pl.DataFrame(frame.rows(), schema=frame.schema, orient="row")


def _with_late(columns: Mapping[str, Any], late: pl.DataFrame) -> dict[str, Any]:
    """Columns with late rows where their time is."""
    time_ns = columns["time_ns"]
    place = np.searchsorted(time_ns, late["time_ns"].to_numpy(), side="right")
    return {
        name: _text_inserted(values, late[name], place)
        if isinstance(values, pl.Series)
        else _inserted(values, _numbers(late, name), place)
        for name, values in columns.items()
    }


def _inserted(values: Numbers, late: Numbers, place: IdArray) -> Numbers:
    """As `numpy.insert`, of an array of any length."""
    both = room_for(len(values) + len(late), values.dtype)
    both[place + np.arange(len(late))] = late
    for part in chunks(len(values)):
        shift = np.searchsorted(place, np.arange(part.start, part.stop), side="right")
        both[np.arange(part.start, part.stop) + shift] = values[part]
    return both


def _text_inserted(values: pl.Series, late: pl.Series, place: IdArray) -> pl.Series:
    return pl.Series(values.name, np.insert(values.to_numpy(), place, late.to_numpy()), dtype=pl.String)


def _numbers(frame: pl.DataFrame, name: str) -> Numbers:
    """Column with -1 for no id and `NEVER` for no time."""
    kind = frame.schema[name]
    if kind == pl.Int32:
        return ids_of(frame, name)
    return times_of(frame, name) if kind == pl.Int64 else frame[name].to_numpy()
