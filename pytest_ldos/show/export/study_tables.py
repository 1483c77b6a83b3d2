"""The tables of a study as Parquet files, for any tool that reads tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from pytest_ldos.base.parquet import write_table
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.writable import writing
from pytest_ldos.instruments.study import ROUNDS, Column, Study, Table

_UNITS = {"µs": "us", "%": "percent"}


def write_study_tables(study: Study, directory: Path) -> list[Path]:
    """Writes ``TABLE.parquet`` for each table, and ``rounds.parquet`` with a row for each round and quantity.

    Columns are named ``NAME_UNIT`` (``p99_us``). Files of the same name are replaced.

    Raises:
        NotWritten, ConfigurationError: the directory cannot be written.
    """
    frames = {table.name: table_frame(table) for table in study.tables} | {ROUNDS: rounds_frame(study)}
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for name, frame in frames.items():
            write_table(frame, directory / f"{name}.parquet")
    return [directory / f"{name}.parquet" for name in frames]


def table_frame(table: Table) -> pl.DataFrame:
    """A frame with the table's columns; numbers are 64-bit floats or integers, words strings, absent cells null."""
    columns = {name_of(column): [row[place] for row in table.rows] for place, column in enumerate(table.columns)}
    return pl.DataFrame(columns, strict=False)


def rounds_frame(study: Study) -> pl.DataFrame:
    """``round``, ``case``, ``block``, ``quantity``, ``unit``, ``value`` and, if there is no value, its ``reason``."""
    units = {each.name: each.unit for each in study.quantities}
    rows = [
        (number, each.case, each.block, name, units[name], *_value_or_reason(value, each.failure))
        for number, each in enumerate(study.rounds)
        for name, value in {**dict.fromkeys(units, Missing(each.failure)), **each.values}.items()
    ]
    schema = {
        "round": pl.Int64,
        "case": pl.String,
        "block": pl.Int64,
        "quantity": pl.String,
        "unit": pl.String,
        "value": pl.Float64,
        "reason": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _value_or_reason(value: float | Missing | Invalid, failure: str) -> tuple[float | None, str]:
    if isinstance(value, Missing | Invalid):
        return None, value.reason or failure or "not measured"
    return value, ""


def name_of(column: Column) -> str:
    """``p99_us`` for the column ``p99`` in µs."""
    unit = _UNITS.get(column.unit, column.unit)
    return f"{column.name}_{unit}" if unit else column.name
