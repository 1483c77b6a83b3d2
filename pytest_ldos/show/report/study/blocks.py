"""A table of a study on a terminal."""

from __future__ import annotations

from pytest_ldos.instruments.study import Table
from pytest_ldos.show.report.console import Line
from pytest_ldos.show.report.study.words import headings_of, is_words, rows_of
from pytest_ldos.show.report.tables import INDENT, column, split_table


def draw_table(table: Table, width: int) -> list[Line]:
    """What names a row stands in each block."""
    columns = [
        column(heading, is_text=place == 0, is_name=is_words(table, each))
        for place, (heading, each) in enumerate(zip(headings_of(table), table.columns, strict=True))
    ]
    return split_table(columns, rows_of(table), key=_key(table), width=width, indent=INDENT)


def _key(table: Table) -> int:
    """How many columns name a row: those up to the last one of words in the first half."""
    half = table.columns[: (len(table.columns) + 1) // 2]
    return max((place for place, each in enumerate(half, 1) if is_words(table, each)), default=1)
