"""Words of a study that every format shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pytest_ldos.instruments.study import Cell, Study
from pytest_ldos.show.page.model import ABSENT

_EXACT: Final = 1_000_000_000
"""Whole up to here, even where they are no counts."""


def title_of(study: Study) -> str:
    return f"ldos {study.instrument}"


def setting_of(study: Study) -> Iterator[str]:
    """Layer, middleware, settings and versions of what was measured."""
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


def shown(cell: Cell) -> str:
    """A cell for people: four significant digits, counts whole."""
    if cell is None:
        return ABSENT
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return str(cell)
    return f"{cell:.0f}" if 1000 <= abs(cell) < _EXACT else f"{cell:.4g}"
