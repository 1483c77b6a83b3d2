"""Some rows of a table of events, and two tables as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_ldos.trace.ctf.tables import Column, EventTable

Rows = npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]


def select_rows(table: EventTable, rows: Rows) -> EventTable:
    """Some rows of a table."""
    columns = {name: _selected(column, rows) for name, column in table.columns.items()}
    return EventTable(table.name, table.timestamp_ns[rows], table.cpu_id[rows], table.trace[rows], columns)


def join_tables(first: EventTable | None, second: EventTable | None) -> EventTable | None:
    """Rows of two tables of one event, one after the other; their columns are numbers, or lists of one length."""
    if first is None or not len(first):
        return second
    if second is None or not len(second):
        return first
    columns = {
        name: _joined(column, second.columns[name]) for name, column in first.columns.items() if name in second.columns
    }
    times, cpus, traces = (
        np.concatenate((getattr(first, name), getattr(second, name))) for name in ("timestamp_ns", "cpu_id", "trace")
    )
    return EventTable(first.name, times, cpus, traces, columns)


def _selected(column: Column, rows: Rows) -> Column:
    valid = None if column.valid is None else column.valid[rows]
    if column.offsets is None:
        return replace(column, values=column.values[rows], valid=valid)
    lengths = np.diff(column.offsets)[rows]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    elements = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], lengths)
    values = column.values[np.repeat(column.offsets[:-1][rows], lengths) + elements]
    return replace(column, values=values, offsets=offsets, valid=valid)


def _joined(first: Column, second: Column) -> Column:
    valid = None
    if first.valid is not None or second.valid is not None:
        valid = np.concatenate([_validity(first), _validity(second)])
    return replace(first, values=np.concatenate((first.values, second.values)), valid=valid)


def _validity(column: Column) -> npt.NDArray[np.bool_]:
    return np.ones(len(column), dtype=bool) if column.valid is None else column.valid
