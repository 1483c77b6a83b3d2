"""A study for a terminal."""

from __future__ import annotations

from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from pytest_ldos.middleware.study import Study, Table
from pytest_ldos.report.console import print_to_text
from pytest_ldos.report.study.words import failures_of, headings_of, is_words, rows_of, setting_of, title_of
from pytest_ldos.report.tables import plain_table, wrapped

_NARROWEST: Final = 80


def render(study: Study, *, width: int, color: bool) -> str:
    """What was measured, the tables, and what must be known of them."""
    width = max(width, _NARROWEST)
    parts: list[RenderableType] = [*wrapped(title_of(study), width, style="bold")]
    for each in setting_of(study):
        parts += wrapped(each, width, indent=2, style="dim")
    for table in study.tables:
        if not table.is_detail:
            parts += [Text(), *wrapped(table.title, width), _table(table)]
    remarks = [*failures_of(study), *study.notes]
    if remarks:
        parts += [Text()]
    for each in remarks:
        parts += wrapped(each, width)
    return print_to_text(Group(*parts), width=width, color=color)


def _table(table: Table) -> RenderableType:
    left = [column.heading for column in table.columns if is_words(table, column)]
    return plain_table(headings_of(table), rows_of(table), left=left)
