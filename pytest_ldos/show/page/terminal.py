"""Page for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, assert_never

from pytest_ldos.base.text import Rendered
from pytest_ldos.show.page.model import (
    Block,
    Bullets,
    Drawing,
    Figure,
    Folded,
    Kind,
    Legend,
    Links,
    Page,
    Section,
    Table,
    Text,
    Tone,
    Words,
)
from pytest_ldos.show.page.text_table import INDENT, Line, draw_table, line, print_to_text, wrapped

NARROWEST: Final = 80
"""Least width, in columns of a terminal, to which a page is fitted."""


def render(page: Page, *, width: int, color: bool) -> Rendered:
    """The page as text; only lines to copy are wider than `width`."""
    width = max(width, NARROWEST)
    lines = wrapped(page.answer or page.title, width, tone=page.tone)
    for each in page.setting:
        lines += wrapped(each, width, indent=INDENT, tone=Tone.QUIET)
    below = _lines(page.blocks, width)
    return print_to_text([*lines, *([line()] if lines and below else []), *below], color=color)


def _lines(blocks: Iterable[Block], width: int) -> list[Line]:
    """Blocks one below the other, with blank lines around sections and tables."""
    lines: list[Line] = []
    is_apart = False
    for each in blocks:
        shown = _block(each, width)
        if shown:
            is_section = isinstance(each, Section | Figure)
            lines += [line()] if lines and (is_apart or is_section or isinstance(each, Table)) else []
            lines += shown
            is_apart = is_section
    return lines


def _block(block: Block, width: int) -> list[Line]:
    match block:
        case Table():
            return _table(block, width)
        case Figure():
            return _titled(block, () if block.table is None else (block.table,), width)
        case Section():
            return _titled(block, block.blocks, width)
        case Drawing() | Legend() | Folded():
            return []
    return _leaf(block, width)


def _leaf(block: Text | Bullets | Links, width: int) -> list[Line]:
    """A block of words."""
    match block:
        case Text():
            whole = [line(block.text, tone=block.tone)]
            return whole if block.is_whole else wrapped(block.text, width, tone=block.tone)
        case Bullets():
            return [part for each in block.lines for part in _bullet(each, block, width)]
        case Links():
            return [line(f"{each.title}: {each.url}") for each in block.links]
    assert_never(block)


def _bullet(text: str, of: Bullets, width: int) -> list[Line]:
    whole = line(f"{' ' * INDENT}{text}", tone=of.tone)
    return [whole] if of.is_whole else wrapped(text, width, indent=INDENT, tone=of.tone)


def _titled(named: Section | Figure, blocks: Iterable[Block], width: int) -> list[Line]:
    lines = _lines(blocks, width)
    remark = named.remark if isinstance(named, Section) else ""
    if not lines and not remark:
        return []
    badges = [each for each in (named.badge, remark) if each]
    if not badges:
        return [*wrapped(named.title, width, tone=Tone.STRONG), *lines]
    return [line(Words(named.title, Tone.STRONG), *chain(*zip((": ", "; "), badges, strict=False))), *lines]


def _table(table: Table, width: int) -> list[Line]:
    if not table.rows:
        return []
    is_prose = table.columns[-1].kind is Kind.PROSE
    body = list(_sentences(table, width)) if is_prose else draw_table(table, width)
    return [*wrapped(table.title, width, tone=Tone.STRONG), *body]


def _sentences(table: Table, width: int) -> Iterator[Line]:
    """Rows as sentences, for prose that is too long for a column."""
    for row in table.rows:
        *names, sentence = (each.text if isinstance(each, Words) else str(each) for each in row)
        yield from wrapped(f"{', '.join(names)}: {sentence}", width, indent=INDENT)
