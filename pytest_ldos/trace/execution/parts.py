"""Tables of a model that are made part by part, in the order of time, and lie in temporary files meanwhile.

The finished tables are mapped from these files, which have no name any more: the kernel may drop their pages at any
time. Columns with nulls, and with text, are copied to memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.writable import writing
from pytest_ldos.trace.execution.columns import IdArray, TimesNs, frame_of, ids_of, times_of
from pytest_ldos.trace.execution.schema import INSTANCES

_OWNERS: Final = {
    "publications": ("publisher", "publishers"),
    "takes": ("subscription", "subscriptions"),
    "enqueues": ("subscription", "subscriptions"),
    "callback_runs": ("callback", "callbacks"),
}
"""Columns that may name an entity that no init event names."""

Numbers = npt.NDArray[Any]


class Parts:
    """Parts of one table, and what is found out later of their rows.

    Args:
        files: closes the temporary files; what is mapped from them stays.

    Raises:
        NotWritten: by any method, the disk for temporary files is full.
    """

    def __init__(self, table: str, files: ExitStack) -> None:
        self._table, self._stack = table, files
        self._schema = {name: kind for name, kind in INSTANCES[table].items() if name != "id"}
        self._files: dict[str, IO[bytes]] = {}
        self._kinds: dict[str, np.dtype[Any]] = {}
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
                self._late.append(frame.filter(is_late))
                frame = frame.filter(~is_late)
        for name, parts in self._texts.items():
            parts.append(frame[name])
        with writing(_temporary()):
            for name in self._schema:
                if name not in self._texts:
                    self._write(name, _numbers(frame, name))
        self.rows += len(frame)

    def end(self, rows: IdArray, end_ns: TimesNs) -> None:
        """Notes the `end_ns` of earlier rows."""
        if len(rows):
            self._ends.append((rows, end_ns))

    def finish(self, renumbered: Mapping[str, IdArray | None]) -> pl.DataFrame:
        """The whole table.

        Args:
            renumbered: new numbers of entities by table; ``None`` where all are the same.
        """
        with writing(_temporary()):
            self._set_ends()
            self._insert_late()
        column, owner = _OWNERS.get(self._table, ("", ""))
        numbers = renumbered.get(owner)
        columns: dict[str, Any] = {}
        for name in self._schema:
            columns[name] = pl.concat(self._texts[name]) if name in self._texts else self._mapped(name)
            if name == column and numbers is not None:
                columns[name] = numbers[columns[name]]
        return frame_of(INSTANCES[self._table], columns)

    def _write(self, name: str, values: Numbers) -> None:
        if name not in self._files:
            self._files[name] = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            self._kinds[name] = values.dtype
        values.tofile(self._files[name])

    def _mapped(self, name: str, *, writable: bool = False) -> Numbers:
        if not self.rows:
            return np.empty(0, dtype=self._kinds[name])
        self._files[name].flush()
        return np.asarray(np.memmap(self._files[name], dtype=self._kinds[name], mode="r+" if writable else "r"))

    def _set_ends(self) -> None:
        if self._ends:
            rows, end_ns = (np.concatenate(column) for column in zip(*self._ends, strict=True))
            self._mapped("end_ns", writable=True)[rows] = end_ns

    def _insert_late(self) -> None:
        """Puts late rows where their time is, one column after the other."""
        if not self._late:
            return
        late = pl.concat(self._late).sort("time_ns", maintain_order=True)
        place = np.searchsorted(self._mapped("time_ns"), late["time_ns"].to_numpy(), side="right")
        for name, parts in self._texts.items():
            both = np.insert(pl.concat(parts).to_numpy(), place, late[name].to_numpy())
            self._texts[name] = [pl.Series(name, both, dtype=pl.String)]
        before = {name: self._mapped(name) for name in self._files}
        self._files = {}
        for name, values in before.items():
            self._write(name, np.insert(values, place, _numbers(late, name)))
        self.rows += len(late)


def _temporary() -> Path:
    """Folder of temporary files."""
    return Path(tempfile.gettempdir())


def _numbers(frame: pl.DataFrame, name: str) -> Numbers:
    """Column with -1 for no id and `NEVER` for no time."""
    kind = frame.schema[name]
    if kind == pl.Int32:
        return ids_of(frame, name)
    return times_of(frame, name) if kind == pl.Int64 else frame[name].to_numpy()
