"""A study for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from pytest_ldos.middleware.study import Study, Table
from pytest_ldos.report.console import print_to_text
from pytest_ldos.report.study.blocks import blocks_of
from pytest_ldos.report.study.words import failures_of, is_words, setting_of, title_of
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
            parts += [Text(), *wrapped(table.title, width), *_blocks(table, width)]
    remarks = [*failures_of(study), *study.notes]
    if remarks:
        parts += [Text()]
    for each in remarks:
        parts += wrapped(each, width)
    return print_to_text(Group(*parts), width=width, color=color)


def _blocks(table: Table, width: int) -> Iterator[RenderableType]:
    left = {column.heading for column in table.columns if is_words(table, column)}
    for number, (headings, rows) in enumerate(blocks_of(table, width)):
        if number:
            yield Text()
        yield plain_table(headings, rows, left=left)
