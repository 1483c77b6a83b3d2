"""A table that is wider than a terminal, in blocks below each other: numbers are never cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len

from pytest_ldos.middleware.study import Table
from pytest_ldos.report.study.words import headings_of, is_words, rows_of
from pytest_ldos.text import one_line

Block = tuple[list[str], list[list[str]]]
"""Headings and rows."""

_GAP: Final = 2
_INDENT: Final = 2


def blocks_of(table: Table, width: int) -> Iterator[Block]:
    """The whole table where it fits; else units below names, and what names a row repeated in each block."""
    headings, rows = headings_of(table), [[one_line(cell) for cell in row] for row in rows_of(table)]
    if _needed(_widths(headings, rows)) <= width:
        yield headings, rows
        return
    headings = [heading.replace(" [", "\n[") for heading in headings]
    key = _key(table)
    if _needed(_widths(headings, rows)[:key]) > width // 2:
        rows = [_shortened(row, key, (width // 2) // key - _GAP) for row in rows]
    for places in _packed(_widths(headings, rows), key, width):
        yield [headings[place] for place in places], [[row[place] for place in places] for row in rows]


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    lines = [heading.split("\n") for heading in headings]
    return [
        max(cell_len(each) for each in (*lines[place], *(row[place] for row in rows))) for place in range(len(headings))
    ]


def _needed(widths: Sequence[int]) -> int:
    return _INDENT + sum(widths) + _GAP * len(widths)


def _key(table: Table) -> int:
    """How many columns name a row: those up to the last one of words in the first half."""
    half = table.columns[: (len(table.columns) + 1) // 2]
    return max((place for place, column in enumerate(half, 1) if is_words(table, column)), default=1)


def _shortened(row: Sequence[str], key: int, most: int) -> list[str]:
    """Names may be long, and are whole in other formats."""
    return [cell if cell_len(cell) <= most else f"{cell[: most - 1]}…" for cell in row[:key]] + list(row[key:])


def _packed(widths: Sequence[int], key: int, width: int) -> Iterator[list[int]]:
    """Places of columns, block by block."""
    block = list(range(key))
    for place in range(key, len(widths)):
        if len(block) > key and _needed([widths[each] for each in (*block, place)]) > width:
            yield block
            block = list(range(key))
        block.append(place)
    yield block
