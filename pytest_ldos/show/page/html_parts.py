"""Parts of a page of HTML: safe text, verdicts, lists, and tables that say what they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import one_line
from pytest_ldos.show.page.model import Amount, Badge, Cell, Column, Drawing, Table, Tone, Words

_SIGNS: Final[Mapping[Tone, str]] = {Tone.GOOD: "✓", Tone.BAD: "✕", Tone.DOUBT: "?"}
_FEW: Final = 3
"""Columns that fit any window."""


def said(text: str) -> Node:
    """Text that may come from other programs; what direction it is written in stays its own."""
    return h.bdi[one_line(text)] if text else ""


def badge(shown: Badge | None) -> Node:
    """A verdict or state: a word, with a colour and a sign that only repeat it."""
    if shown is None:
        return None
    sign = _SIGNS.get(shown.tone)
    before: Node = None if sign is None else [h.span(aria_hidden="true")[sign], " "]
    return h.span(class_=f"badge {shown.tone}".strip())[before, shown.text]


def bullet_list(lines: Iterable[str]) -> Node:
    """Sentences, one a line; nothing where there are none."""
    items = [h.li[said(line)] for line in lines]
    return h.ul[items] if items else None


def table(shown: Table, *, name: str = "") -> Node:
    """A table whose first column names its rows; nothing where there are no rows.

    Where it is too wide, it scrolls by itself, also by keyboard; in a narrow window, rows with many cells are blocks.

    Args:
        name: of the table for those who do not see it, where it has no title of its own.
    """
    if not shown.rows:
        return None
    first, *others = shown.columns
    head = h.tr[[h.th(scope="col", class_=_kind(shown, column))[_heading(column)] for column in shown.columns]]
    body = [
        h.tr[
            h.th({"data-title": one_line(first.title)}, scope="row")[_cell(row[0])],
            [
                h.td(_data(cell, column), class_=_kind(shown, column))[_cell(cell)]
                for column, cell in zip(others, row[1:], strict=True)
            ],
        ]
        for row in shown.rows
    ]
    caption = h.caption[said(shown.title)] if shown.title else None
    whole = h.table(class_=_classes(shown) or None)[caption, h.thead[head], h.tbody[body]]
    return h.div(".scroll", role="region", aria_label=one_line(shown.title or name), tabindex="0")[whole]


def _classes(shown: Table) -> str:
    is_prose = not any(column.is_number for column in shown.columns)
    return " ".join([*(["prose"] if is_prose else []), *(["many"] if len(shown.columns) > _FEW else [])])


def _kind(shown: Table, column: Column) -> str | None:
    return "number" if column.is_number and column is not shown.columns[0] else None


def _heading(column: Column) -> Node:
    if column.drawing is None:
        return said(column.title)
    return [h.span(".unseen")[one_line(column.title)], column.drawing.draw()]


def _data(cell: Cell, column: Column) -> dict[str, str]:
    """Attributes for a narrow window, which shows the title beside each cell, and for sorting."""
    value = cell.value if isinstance(cell, Amount) else None
    return {"data-title": one_line(column.title)} | ({} if value is None else {"data-value": f"{value:.9g}"})


def _cell(cell: Cell) -> Node:
    match cell:
        case Badge():
            return badge(cell)
        case Drawing():
            return cell.draw()
        case Words():
            return said(cell.text)
    return said(cell)


def folded(summary: str, content: Node) -> Node:
    """Content that is shown when it is asked for."""
    return h.details[h.summary[said(summary)], content]
