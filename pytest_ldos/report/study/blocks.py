"""A table that is wider than a terminal, in blocks below each other: numbers are never cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from pytest_ldos.middleware.study import Table
from pytest_ldos.report.study.words import headings_of, is_words, rows_of
from pytest_ldos.report.tables import Column, column, least_width

Block = tuple[list[Column], list[list[str]]]
"""Columns and rows."""


def blocks_of(table: Table, width: int) -> Iterator[Block]:
    """The whole table where it fits; else units below names, and what names a row repeated in each block."""
    rows, key = rows_of(table), _key(table)
    columns = [_column(table, place, heading) for place, heading in enumerate(headings_of(table))]
    if least_width(columns, rows, narrows=False) > width:
        columns = [_column(table, place, *_stacked(each)) for place, each in enumerate(headings_of(table))]
    for places in _split(columns, rows, key, width):
        yield [columns[place] for place in places], [[row[place] for place in places] for row in rows]


def _column(table: Table, place: int, *title: str) -> Column:
    return column(*title, is_text=place == 0, is_name=is_words(table, table.columns[place]))


def _stacked(heading: str) -> tuple[str, ...]:
    name, bracket, unit = heading.partition(" [")
    return (name, f"[{unit}") if bracket else (heading,)


def _key(table: Table) -> int:
    """How many columns name a row: those up to the last one of words in the first half."""
    half = table.columns[: (len(table.columns) + 1) // 2]
    return max((place for place, each in enumerate(half, 1) if is_words(table, each)), default=1)


def _split(columns: Sequence[Column], rows: Sequence[Sequence[str]], key: int, width: int) -> list[list[int]]:
    """Places of columns, block by block: as few blocks as can be, none much smaller than the others."""

    def fits(places: Sequence[int]) -> bool:
        chosen = [[row[each] for each in places] for row in rows]
        return least_width([columns[each] for each in places], chosen) <= width

    names, values = list(range(key)), range(key, len(columns))
    for count in range(1, len(values)):
        ends = accumulate(((len(values) + part) // count for part in range(count)), initial=key)
        blocks = [[*names, *range(*each)] for each in pairwise(ends)]
        if all(map(fits, blocks)):
            return blocks
    return [[*names, place] for place in values] or [names]
