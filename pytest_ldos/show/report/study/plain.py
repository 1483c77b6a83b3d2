"""A study for programs: JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from pytest_ldos.base.series import CENSORED, Invalid, Missing, Value
from pytest_ldos.instruments.study import Round, Study, Table

KIND: Final = "pytest-ldos study"
SCHEMA: Final = 1


def to_plain(study: Study) -> dict[str, Any]:
    """Everything that was found, as plain values; a table is a list of rows by column name."""
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "instrument": study.instrument,
        "name": study.name,
        "layer": study.layer,
        "middleware": study.middleware,
        "started_at": study.started_at,
        "versions": dict(study.versions),
        "settings": dict(study.settings),
        "notes": list(study.notes),
        "missed": list(study.missed),
        "quantities": [{"name": each.name, "title": each.title, "unit": each.unit} for each in study.quantities],
        "rounds": [_round(each) for each in study.rounds],
        "tables": {table.name: _table(table) for table in study.tables},
        "figures": [asdict(figure) for figure in study.figures],
    }


def _round(measured: Round) -> dict[str, Any]:
    return {
        "case": measured.case,
        "block": measured.block,
        "failure": measured.failure or None,
        "values": {name: _value(value) for name, value in measured.values.items()},
        "details": dict(measured.details),
    }


def _value(value: Value) -> float | Mapping[str, str] | None:
    if isinstance(value, Missing):
        return {"missing": value.reason}
    if isinstance(value, Invalid):
        return {"invalid": value.reason}
    return None if value == CENSORED else value


def _table(table: Table) -> dict[str, Any]:
    names = [column.name for column in table.columns]
    return {
        "title": table.title,
        "units": {column.name: column.unit for column in table.columns if column.unit},
        "rows": [dict(zip(names, row, strict=True)) for row in table.rows],
    }
