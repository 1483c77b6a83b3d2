"""A study as plain values, and texts common to all formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from pytest_ldos.base.series import CENSORED, Invalid, Missing, Value
from pytest_ldos.instruments.study import Cell, Round, Study, Table
from pytest_ldos.show.page.model import ABSENT

_EXACT: Final = 1_000_000_000
"""Numbers from 1000 up to this are shown whole, even if they are not counts."""


def title_of(study: Study) -> str:
    return f"ldos {study.instrument}"


def setting_of(study: Study) -> Iterator[str]:
    """Layer, middleware, settings and versions of the measured software."""
    yield f"{study.layer}: {study.middleware}"
    if study.settings:
        yield ", ".join(f"{name} {_setting(value)}" for name, value in study.settings.items())
    if study.versions:
        yield ", ".join(f"{name} {version}" for name, version in study.versions.items())


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shown(value) if isinstance(value, int | float) else str(value)


def failures_of(study: Study) -> Iterator[str]:
    """Rounds without a result; equal failures share a line."""
    rounds: dict[tuple[str, str], int] = {}
    for each in study.rounds:
        if each.failure:
            key = (each.case, each.failure)
            rounds[key] = rounds.get(key, 0) + 1
    for (case, failure), count in rounds.items():
        yield f"{case}: {count} {'round' if count == 1 else 'rounds'} without a result: {failure}"


def shown(cell: Cell) -> str:
    """A cell as text: four significant digits, counts whole."""
    if cell is None:
        return ABSENT
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return str(cell)
    return f"{cell:.0f}" if 1000 <= abs(cell) < _EXACT else f"{cell:.4g}"


KIND: Final = "pytest-ldos study"
SCHEMA: Final = 1


def to_plain(study: Study) -> dict[str, Any]:
    """All results as plain values; a table is a list of rows by column name."""
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
