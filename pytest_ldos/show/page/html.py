"""Page of HTML that needs nothing else: no script, no font, no picture from anywhere.

Its colours follow the reader's scheme, its tables hold what its drawings show, and the page says itself that nothing
may be loaded or run, but for one script of ours where a page is interactive: by its digest, so that no other runs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from importlib.resources import files
from itertools import count, groupby
from typing import Final, assert_never

import htpy as h
from htpy import Node
from markupsafe import Markup

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.show.page.html_parts import badge, bullet_list, folded, said, table
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
)

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_HEADINGS: Final = (h.h2, h.h3, h.h4)


def render(page: Page) -> Rendered:
    """The page as text."""
    script = one_line(_read("page.js")) if page.is_interactive else ""
    body = h.body[
        h.a(".skip", href="#results")["Skip to the results"],
        h.header[h.h1[_titled(page.title, page)], bullet_list(page.setting), _contents(page)],
        h.main(id="results", tabindex="-1")[
            h.p(".answer")[said(page.answer)] if page.answer else None,
            _Blocks().show(page.blocks),
        ],
        h.footer[h.p[said(page.made)]] if page.made else None,
        h.script[Markup(script)] if script else None,  # noqa: S704 - a file of this package
    ]
    return whole_page(f"{page.title} {page.badge.text}" if page.badge else page.title, body, script=script)


def _contents(page: Page) -> Node:
    if page.contents is None:
        return None
    return h.nav(aria_label=one_line(page.contents.title))[table(page.contents)]


def whole_page(title: str, body: Node, *, script: str = "") -> Rendered:
    """A page that loads nothing and runs nothing else, as text; whatever words are in it can be seen, and end no line.

    Args:
        script: the one of ours that `body` has; no other is run.
    """
    return Rendered(f"{one_line(str(h.html(lang='en')[_head(title, script), body]))}\n")


def _head(title: str, script: str) -> Node:
    allowed = f"; script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" if script else ""
    return h.head[
        h.meta(charset="utf-8"),
        h.meta({"http-equiv": "Content-Security-Policy"}, content=f"{_POLICY}{allowed}"),
        h.meta(name="viewport", content="width=device-width, initial-scale=1"),
        h.meta(name="color-scheme", content="light dark"),
        h.link(rel="icon", href="data:,"),
        h.title[one_line(title)],
        h.style[Markup(_read("style.css") + _read("series.css"))],  # noqa: S704 - files of this package
    ]


def _read(name: str) -> str:
    return files("pytest_ldos.show.page").joinpath(name).read_text("utf-8")


def _titled(title: str, named: Page | Section | Figure) -> Node:
    return [said(title), " ", badge(named.badge)] if named.badge else said(title)


class _Blocks:
    """The blocks of one page, each section with an id of its own."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def show(self, blocks: Iterable[Block], level: int = 0, name: str = "") -> list[Node]:
        """Blocks below each other; figures stand side by side where there is room.

        Args:
            level: of the headings in them, from 0.
            name: of what they belong to.
        """
        shown: list[Node] = []
        for is_figure, some in groupby(blocks, key=lambda each: isinstance(each, Figure)):
            nodes = [node for each in some if (node := self._block(each, level, name)) is not None]
            shown += [h.div(".charts")[nodes]] if is_figure else nodes
        return shown

    def _block(self, block: Block, level: int, name: str) -> Node:
        match block:
            case Table():
                return table(block, name=f"{name}, table")
            case Figure():
                return _figure(block, level)
            case Folded():
                return folded(block.title, self.show(block.blocks, level, block.title))
            case Section():
                return self._section(block, level)
        return _leaf(block)

    def _section(self, section: Section, level: int) -> Node:
        content = self.show(section.blocks, level + 1, section.title)
        if not content:
            return None
        if not section.title:
            return h.section[content]
        anchor = section.anchor or f"section-{next(self._numbers)}"
        heading = _HEADINGS[level](id=anchor)[_titled(section.title, section)]
        return h.section(aria_labelledby=anchor)[heading, content]


def _leaf(block: Text | Bullets | Links | Legend | Drawing) -> Node:
    """A block without blocks in it."""
    match block:
        case Text():
            return h.p(class_=block.tone or None)[said(block.text)]
        case Bullets():
            return bullet_list(block.lines)
        case Links():
            return h.ul[(h.li[h.a(href=each.url)[said(each.title)]] for each in block.links)] if block.links else None
        case Legend():
            return h.dl[[(h.dt[said(word)], h.dd[said(meaning)]) for word, meaning in block.meanings]]
        case Drawing():
            return block.draw()
    assert_never(block)


def _figure(figure: Figure, level: int) -> Node:
    heading = _HEADINGS[level][_titled(figure.title, figure)]
    numbers = None if figure.table is None else folded("numbers", table(figure.table, name=figure.title))
    drawings = h.div(".drawings")[[each.draw() for each in figure.drawings]]
    return h.figure(".metric", aria_label=one_line(figure.title))[h.figcaption[heading], drawings, numbers]
