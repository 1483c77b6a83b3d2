"""What is said of a study in every format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pytest_ldos.instruments.study import Cell, Column, Study, Table

ABSENT: Final = "–"
_EXACT: Final = 1_000_000_000
"""Whole up to here, even where they are no counts."""


def title_of(study: Study) -> str:
    return f"ldos {study.instrument}"


def setting_of(study: Study) -> Iterator[str]:
    """What was measured, with what."""
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
    """Rounds that gave no numbers, those that failed alike in one line."""
    rounds: dict[tuple[str, str], int] = {}
    for each in study.rounds:
        if each.failure:
            key = (each.case, each.failure)
            rounds[key] = rounds.get(key, 0) + 1
    for (case, failure), count in rounds.items():
        yield f"{case}: {count} {'round' if count == 1 else 'rounds'} without a result: {failure}"


def headings_of(table: Table) -> list[str]:
    return [column.heading for column in table.columns]


def rows_of(table: Table) -> list[list[str]]:
    return [[shown(cell) for cell in row] for row in table.rows]


def shown(cell: Cell) -> str:
    """A cell for people: four significant digits, counts whole."""
    if cell is None:
        return ABSENT
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return str(cell)
    return f"{cell:.0f}" if 1000 <= abs(cell) < _EXACT else f"{cell:.4g}"


def is_words(table: Table, column: Column) -> bool:
    """Whether a column holds text."""
    place = table.columns.index(column)
    return any(isinstance(row[place], str) for row in table.rows)
