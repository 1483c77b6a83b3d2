"""Tables of a model that are made part by part, in the order of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.trace.execution.columns import IdArray, TimesNs
from pytest_ldos.trace.execution.schema import INSTANCES

_OWNERS: Final = {
    "publications": ("publisher", "publishers"),
    "takes": ("subscription", "subscriptions"),
    "enqueues": ("subscription", "subscriptions"),
    "callback_runs": ("callback", "callbacks"),
}
"""Columns that may name an entity that no init event names."""


class Parts:
    """Parts of tables, and what is found out later of their rows.

    Args:
        begins_ns: first moment of each part, rising.
    """

    def __init__(self, begins_ns: Sequence[int]) -> None:
        self._begins_ns = np.array(begins_ns, dtype=np.int64)
        self._parts: dict[str, list[pl.DataFrame]] = defaultdict(list)
        self._rows: dict[str, int] = defaultdict(int)
        self._late: dict[str, list[pl.DataFrame]] = defaultdict(list)
        self._ends: dict[str, list[tuple[IdArray, TimesNs]]] = defaultdict(list)

    def rows(self, table: str) -> int:
        """Number of rows so far; the id of the next one."""
        return self._rows[table]

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """Adds the next part; rows of an earlier one's time may be among those that have a `time_ns`."""
        frame = frame.drop("id", strict=False)
        number = len(self._parts[table])
        if number and "time_ns" in frame.columns:
            is_late = frame["time_ns"] < int(self._begins_ns[number])
            if is_late.any():
                self._late[table].append(frame.filter(is_late))
                frame = frame.filter(~is_late)
        self._parts[table].append(frame)
        self._rows[table] += len(frame)

    def end(self, table: str, rows: IdArray, end_ns: TimesNs) -> None:
        """Notes the `end_ns` of earlier rows."""
        if len(rows):
            self._ends[table].append((rows, end_ns))

    def finish(self, table: str, renumbered: Mapping[str, IdArray | None]) -> pl.DataFrame:
        """The whole table; its parts are dropped.

        Args:
            renumbered: new numbers of entities by table; ``None`` where all are the same.
        """
        parts = self._parts.pop(table)
        self._insert(parts, self._late.pop(table, []))
        self._set_ends(parts, self._ends.pop(table, []))
        column, owner = _OWNERS.get(table, ("", ""))
        numbers = renumbered.get(owner)
        if numbers is not None:
            series = pl.Series(numbers, dtype=pl.Int32)
            parts = [part.with_columns(series.gather(part[column]).alias(column)) for part in parts]
        schema = INSTANCES[table]
        whole = pl.concat(parts, rechunk=True)
        if "id" in schema:
            whole = whole.with_columns(id=pl.int_range(pl.len(), dtype=pl.Int32))
        return whole.select(*schema)

    def _insert(self, parts: list[pl.DataFrame], late: list[pl.DataFrame]) -> None:
        """Puts late rows where their time is."""
        if not late:
            return
        rows = pl.concat(late)
        place = np.searchsorted(self._begins_ns, rows["time_ns"].to_numpy(), side="right") - 1
        for number in np.unique(place).tolist():
            both = pl.concat([parts[number], rows.filter(pl.Series(place == number))])
            parts[number] = both.sort("time_ns", maintain_order=True)

    @staticmethod
    def _set_ends(parts: list[pl.DataFrame], ends: list[tuple[IdArray, TimesNs]]) -> None:
        if not ends:
            return
        rows, end_ns = (np.concatenate(column) for column in zip(*ends, strict=True))
        first = np.cumsum([0, *(len(part) for part in parts)])
        place = np.searchsorted(first, rows, side="right") - 1
        for number in np.unique(place).tolist():
            own = place == number
            column = parts[number]["end_ns"].scatter((rows[own] - first[number]).tolist(), end_ns[own].tolist())
            parts[number] = parts[number].with_columns(column)
