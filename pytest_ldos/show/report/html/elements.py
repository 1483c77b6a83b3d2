"""What all parts of the page are made of: safe text, verdicts, tables that say what they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import one_line
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.words import verdict_word

_FEW: Final = 3
"""Columns that fit any window."""


def said(text: str) -> Node:
    """Text that may come from other programs; what direction it is written in stays its own."""
    return h.bdi[one_line(text)] if text else ""


def badge(verdict: Verdict | None) -> Node:
    """A verdict: a word, with a colour and a sign that only repeat it."""
    if verdict is None:
        return h.span(".badge")[verdict_word(None)]
    sign = h.span(aria_hidden="true")[verdict.tone.sign]
    return h.span(f".badge.{verdict.tone.value}")[sign, " ", verdict_word(verdict)]


def unseen(text: str) -> Node:
    """Words for those who do not see the drawing that stands there."""
    return h.span(".unseen")[text]


def bullet_list(lines: Iterable[str]) -> Node:
    """Sentences, one a line; nothing where there are none."""
    items = [h.li[said(line)] for line in lines]
    return h.ul[items] if items else None


@dataclass(frozen=True)
class Column:
    """A column's heading.

    Attributes:
        title: where rows stand as blocks, it stands beside each cell.
        is_number: stands at the right.
        drawing: is shown instead of the title, which is then for those who do not see it.
    """

    title: str
    is_number: bool = False
    drawing: Node = None

    @property
    def heading(self) -> Node:
        return said(self.title) if self.drawing is None else [unseen(self.title), self.drawing]


def table(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Node]], *, kind: str = "") -> Node:
    """A table whose first column names its rows.

    Where it is too wide, it scrolls by itself, also by keyboard; in a narrow window, rows with many cells are blocks.
    """
    head = h.tr[[h.th(scope="col", class_=_kind(column))[column.heading] for column in columns]]
    body = [
        h.tr[
            h.th({"data-title": one_line(columns[0].title)}, scope="row")[_safe(row[0])],
            [_cell(column, cell) for column, cell in zip(columns[1:], row[1:], strict=True)],
        ]
        for row in rows
    ]
    kinds = " ".join(each for each in (kind, "many" if len(columns) > _FEW else "") if each)
    whole = h.table(class_=kinds or None)[h.caption[said(caption)], h.thead[head], h.tbody[body]]
    return h.div(".scroll", role="region", aria_label=one_line(caption), tabindex="0")[whole]


def _cell(column: Column, cell: Node) -> Node:
    return h.td({"data-title": one_line(column.title)}, class_=_kind(column))[_safe(cell)]


def _safe(cell: Node) -> Node:
    """Plain text may hold other programs' words, such as a unit."""
    return one_line(cell) if isinstance(cell, str) else cell


def _kind(column: Column) -> str | None:
    return "number" if column.is_number else None


def folded(summary: str, content: Node) -> Node:
    """Content that is shown when it is asked for."""
    return h.details[h.summary[said(summary)], content]
