"""Page in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from pytest_ldos.base.text import Rendered
from pytest_ldos.show.page.markdown_parts import (
    Markdown,
    bullets,
    escape,
    folded,
    heading,
    join,
    signed,
    small,
    strong,
    table,
)
from pytest_ldos.show.page.model import (
    Block,
    Bullets,
    Drawing,
    Figure,
    Folded,
    Legend,
    Page,
    Section,
    Table,
    Text,
    Tone,
)

_TOP = 2
"""Level of the heading of a page, which stands in a page of others."""


def render(page: Page) -> Rendered:
    """The title and the answer first, the setting last."""
    parts = [heading(_TOP, signed(page.title, page.badge)), escape(page.answer), *_parts(page.blocks, _TOP + 1)]
    return join([*parts, small([*page.setting, *([page.made] if page.made else [])])])


def _parts(blocks: Iterable[Block], level: int) -> Iterator[Markdown]:
    for each in blocks:
        yield from _block(each, level)


def _block(block: Block, level: int) -> Iterator[Markdown]:
    match block:
        case Text():
            yield small([block.text]) if block.tone is Tone.QUIET else escape(block.text)
        case Bullets():
            yield small(block.lines) if block.tone is Tone.QUIET else bullets(block.lines)
        case Table():
            yield strong(block.title) if block.title and block.rows else Markdown("")
            yield table(block)
        case Figure():
            numbers = () if block.table is None else (block.table,)
            yield from _titled(signed(block.title, block.badge), numbers, level)
        case Folded():
            if block.is_long:
                return
            yield folded(block.title, list(_parts(block.blocks, level)))
        case Section():
            yield from _titled(signed(block.title, block.badge), block.blocks, level)
        case Drawing() | Legend():
            return
        case _:
            assert_never(block)


def _titled(title: str, blocks: Iterable[Block], level: int) -> Iterator[Markdown]:
    parts = [part for part in _parts(blocks, level + 1) if part]
    if parts:
        yield heading(level, title) if title else Markdown("")
        yield from parts
