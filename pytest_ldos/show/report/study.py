"""A study of an instrument: its page, and its plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from pytest_ldos.base.series import CENSORED, Invalid, Missing, Value
from pytest_ldos.base.text import Rendered, counted
from pytest_ldos.instruments import study as values
from pytest_ldos.instruments.study import Study
from pytest_ldos.show.page import model as page
from pytest_ldos.show.page.formats import Format, render, to_json

_EXACT: Final = 1_000_000_000  # numbers from 1000 up to this are shown whole, even if they are not counts


def setting_of(study: Study) -> Iterator[str]:
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
    for (case, failure), count in Counter((each.case, each.failure) for each in study.rounds if each.failure).items():
        yield f"{case}: {counted(count, 'round')} without a result: {failure}"


def shown(cell: values.Cell) -> str:
    """A cell as text: four significant digits, counts whole."""
    if cell is None:
        return page.ABSENT
    if isinstance(cell, str | int):
        return str(cell)
    return f"{cell:.0f}" if 1000 <= abs(cell) < _EXACT else f"{cell:.4g}"


def to_plain(study: Study) -> dict[str, Any]:
    """All results as plain values; a table is a list of rows by column name."""
    return {
        "kind": "pytest-ldos study",
        "schema": 1,
        **{name: getattr(study, name) for name in ("instrument", "name", "layer", "middleware", "started_at")},
        "versions": dict(study.versions),
        "settings": dict(study.settings),
        "notes": list(study.notes),
        "missed": list(study.missed),
        "quantities": [{"name": each.name, "title": each.title, "unit": each.unit} for each in study.quantities],
        "rounds": [
            vars(each)
            | {"failure": each.failure or None, "values": {name: _value(one) for name, one in each.values.items()}}
            for each in study.rounds
        ],
        "tables": {table.name: _table_to_plain(table) for table in study.tables},
        "figures": [asdict(figure) for figure in study.figures],
    }


def _value(value: Value) -> float | Mapping[str, str] | None:
    if isinstance(value, Missing):
        return {"missing": value.reason}
    if isinstance(value, Invalid):
        return {"invalid": value.reason}
    return None if value == CENSORED else value


def _table_to_plain(table: values.Table) -> dict[str, Any]:
    names = [column.name for column in table.columns]
    return {
        "title": table.title,
        "units": {column.name: column.unit for column in table.columns if column.unit},
        "rows": [dict(zip(names, row, strict=True)) for row in table.rows],
    }


def render_study_as(study: Study, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """The study in a format, which may be `Unavailable`; width and colour apply to a terminal only."""
    if kind is Format.JSON:
        return to_json(to_plain(study))
    return render(compose_page(study), kind, width=width, color=color)


def compose_page(study: Study) -> page.Page:
    drawn = ((each.title, page.drawn_by("pytest_ldos.show.report.figures:draw_figure", each)) for each in study.figures)
    return page.Page(
        title=f"ldos {study.instrument}",
        setting=tuple(setting_of(study)),
        blocks=(
            page.Section("Notes", (page.Bullets((*failures_of(study), *study.notes)),)),
            *map(_show_table, study.tables),
            page.Section("Figures", tuple(page.Figure(title=title, drawings=(each,)) for title, each in drawn)),
        ),
        made=f"measured {study.started_at}",
    )


def _show_table(table: values.Table) -> page.Block:
    """A table; its rows are named by the columns up to the last column of words in the first half."""
    kinds = [
        page.Kind.NAME
        if any(isinstance(row[place], str) for row in table.rows)
        else page.Kind.NUMBER
        if place
        else page.Kind.WORD
        for place in range(len(table.columns))
    ]
    half = kinds[: (len(kinds) + 1) // 2]
    content = page.Table(
        columns=tuple(page.Column(each.heading, kind) for each, kind in zip(table.columns, kinds, strict=True)),
        rows=tuple(tuple(map(shown, row)) for row in table.rows),
        key=max((place for place, kind in enumerate(half, 1) if kind is page.Kind.NAME), default=1),
    )
    return (
        page.Folded(table.title, (content,), is_long=True) if table.is_detail else page.Section(table.title, (content,))
    )
