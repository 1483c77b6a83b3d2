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
    links,
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
    Links,
    Page,
    Section,
    Table,
    Text,
    Tone,
)

_TOP = 2
"""Level of the heading of a page, which stands in a page of others."""

_LOWEST = 3


def render(page: Page) -> Rendered:
    """The title and the answer first, the setting last."""
    parts = [*_contents(page), *_parts(page.blocks, _TOP + 1)]
    last = small([*page.setting, *([page.made] if page.made else [])])
    return join([heading(_TOP, signed(page.title, page.badge)), escape(page.answer), *parts, last])


def _contents(page: Page) -> Iterator[Markdown]:
    if page.contents is not None:
        yield table(page.contents)


def _parts(blocks: Iterable[Block], level: int) -> Iterator[Markdown]:
    for each in blocks:
        yield from _block(each, level)


def _block(block: Block, level: int) -> Iterator[Markdown]:
    match block:
        case Text():
            yield small([block.text]) if block.tone is Tone.QUIET else escape(block.text)
        case Bullets():
            yield small(block.lines) if block.tone is Tone.QUIET else bullets(block.lines)
        case Links():
            yield links(block.links)
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
        yield _heading(level, title)
        yield from parts


def _heading(level: int, title: str) -> Markdown:
    """A heading; words in bold further below, where headings would be smaller than the text."""
    if not title:
        return Markdown("")
    return heading(level, title) if level <= _LOWEST else strong(title)
