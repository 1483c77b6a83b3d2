"""Page of a study of an instrument."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_ldos.base.text import Rendered
from pytest_ldos.instruments import study as values
from pytest_ldos.instruments.study import Study
from pytest_ldos.show.page.formats import Format, render_result
from pytest_ldos.show.page.model import Block, Bullets, Column, Drawing, Figure, Folded, Kind, Page, Section, Table
from pytest_ldos.show.report.study.words import failures_of, setting_of, shown, title_of, to_plain

if TYPE_CHECKING:
    from htpy import Node


def render_study_as(study: Study, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """The study in a format; width and colour apply to a terminal only.

    Raises:
        Unavailable: see `require_format`.
    """
    return render_result(study, kind, page=compose_page, plain=to_plain, width=width, color=color)


def compose_page(study: Study) -> Page:
    """Notes first, then tables and figures; long tables are folded."""
    notes = Section("Notes", (Bullets((*failures_of(study), *study.notes)),))
    return Page(
        title=title_of(study),
        setting=tuple(setting_of(study)),
        blocks=(notes, *map(_section, study.tables), Section("Figures", tuple(map(_figure, study.figures)))),
        made=f"measured {study.started_at}",
    )


def _section(table: values.Table) -> Block:
    if table.is_detail:
        return Folded(table.title, (_table(table),), is_long=True)
    return Section(table.title, (_table(table),))


def _table(table: values.Table) -> Table:
    kinds = [_kind(table, place) for place in range(len(table.columns))]
    return Table(
        columns=tuple(Column(each.heading, kind) for each, kind in zip(table.columns, kinds, strict=True)),
        rows=tuple(tuple(map(shown, row)) for row in table.rows),
        key=_key(kinds),
    )


def _kind(table: values.Table, place: int) -> Kind:
    if any(isinstance(row[place], str) for row in table.rows):
        return Kind.NAME
    return Kind.NUMBER if place else Kind.WORD


def _key(kinds: list[Kind]) -> int:
    """Number of columns that name a row: up to the last column of words in the first half."""
    half = kinds[: (len(kinds) + 1) // 2]
    return max((place for place, kind in enumerate(half, 1) if kind is Kind.NAME), default=1)


def _figure(figure: values.Figure) -> Figure:
    return Figure(title=figure.title, drawings=(Drawing(lambda: list(_draw(figure))),))


def _draw(figure: values.Figure) -> Iterator[Node]:
    from pytest_ldos.show.report.study.drawing import draw, legend  # noqa: PLC0415 - its library is optional

    yield legend(figure)
    yield draw(figure)
