"""Self-contained page of HTML, without external scripts, fonts or images.

Its colours follow the reader's scheme, and its tables hold what its drawings show. A Content Security Policy forbids
loading or running anything, except one script of ours on an interactive page, which is allowed by its digest.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from itertools import count, groupby
from typing import Final, assert_never

import htpy as h
from htpy import Node
from markupsafe import Markup

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.show.page import model

_SIGNS: Final[Mapping[model.Tone, str]] = {model.Tone.GOOD: "✓", model.Tone.BAD: "✕", model.Tone.DOUBT: "?"}
_FEW: Final = 3  # number of columns that fit any window


def untrusted_text(text: str) -> Node:
    """Untrusted text on one line, isolated from the direction of the text around it."""
    return h.bdi[one_line(text)] if text else ""


def link(address: str, text: str) -> Node:
    return h.a(href=address)[untrusted_text(text)]


def badge(shown: model.Badge | None) -> Node:
    if shown is None:
        return None
    sign = _SIGNS.get(shown.tone)
    before: Node = None if sign is None else [h.span(aria_hidden="true")[sign], " "]
    return h.span(class_=f"badge {shown.tone}".strip())[before, shown.text]


def bullet_list(lines: Iterable[str]) -> Node:
    items = [h.li[untrusted_text(line)] for line in lines]
    return h.ul[items] if items else None


def table(shown: model.Table, *, name: str = "") -> Node:
    """A table whose first column names its rows, accessible by `name` if untitled; nothing without rows.

    If it is too wide, it scrolls within the page, also by keyboard. In a narrow window, rows with many cells become
    blocks.
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
    is_prose = not any(column.is_number for column in shown.columns)
    classes = [*(["prose"] if is_prose else []), *(["many"] if len(shown.columns) > _FEW else [])]
    caption = h.caption[untrusted_text(shown.title)] if shown.title else None
    whole = h.table(class_=" ".join(classes) or None)[caption, h.thead[head], h.tbody[body]]
    return h.div(".scroll", role="region", aria_label=one_line(shown.title or name), tabindex="0")[whole]


def _kind(shown: model.Table, column: model.Column) -> str | None:
    return "number" if column.is_number and column is not shown.columns[0] else None


def _heading(column: model.Column) -> Node:
    if column.drawing is None:
        return untrusted_text(column.title)
    return [h.span(".unseen")[one_line(column.title)], column.drawing.draw()]


def _data(cell: model.Cell, column: model.Column) -> dict[str, str]:
    """Attributes for sorting, and for a narrow window, which shows the title next to each cell."""
    value = cell.value if isinstance(cell, model.Amount) else None
    return {"data-title": one_line(column.title)} | ({} if value is None else {"data-value": f"{value:.9g}"})


def _cell(cell: model.Cell) -> Node:
    match cell:
        case model.Badge():
            return badge(cell)
        case model.Drawing():
            return cell.draw()
        case model.Words():
            return untrusted_text(cell.text)
    return untrusted_text(cell)


def folded(summary: str, content: Node) -> Node:
    return h.details[h.summary[untrusted_text(summary)], content]


_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_HEADINGS: Final = (h.h2, h.h3, h.h4)


def render(page: model.Page) -> Rendered:
    script = one_line(_read("page.js")) if page.is_interactive else ""
    body = h.body[
        h.a(".skip", href="#results")["Skip to the results"],
        h.header[
            h.h1[_titled(page.title, page)],
            bullet_list(page.setting),
            h.nav(aria_label=one_line(page.contents.title))[table(page.contents)] if page.contents else None,
        ],
        h.main(id="results", tabindex="-1")[
            h.p(".answer")[untrusted_text(page.answer)] if page.answer else None,
            _Blocks().show(page.blocks),
        ],
        h.footer[h.p[untrusted_text(page.made)]] if page.made else None,
        h.script[Markup(script)] if script else None,  # noqa: S704 - a file of this package
    ]
    return whole_page(f"{page.title} {page.badge.text}" if page.badge else page.title, body, script=script)


def whole_page(title: str, body: Node, *, script: str = "") -> Rendered:
    """A self-contained page as text, untrusted words visible on one line; only our `script` in its body may run."""
    allowed = f"; script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" if script else ""
    head = h.head[
        h.meta(charset="utf-8"),
        h.meta({"http-equiv": "Content-Security-Policy"}, content=f"{_POLICY}{allowed}"),
        h.meta(name="viewport", content="width=device-width, initial-scale=1"),
        h.meta(name="color-scheme", content="light dark"),
        h.link(rel="icon", href="data:,"),
        h.title[one_line(title)],
        h.style[Markup(_read("style.css") + _read("series.css"))],  # noqa: S704 - files of this package
    ]
    return Rendered(f"{one_line(str(h.html(lang='en')[head, body]))}\n")


def _read(name: str) -> str:
    return files("pytest_ldos.show.page").joinpath(name).read_text("utf-8")


def _titled(title: str, named: model.Page | model.Section | model.Figure) -> Node:
    return [untrusted_text(title), " ", badge(named.badge)] if named.badge else untrusted_text(title)


class _Blocks:
    """The blocks of one page, each section with a unique id."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def show(self, blocks: Iterable[model.Block], level: int = 0, name: str = "") -> list[Node]:
        """Renders blocks of the section `name`, with headings of `level`; figures are side by side if there is room."""
        shown: list[Node] = []
        for is_figure, some in groupby(blocks, key=lambda each: isinstance(each, model.Figure)):
            nodes = [node for each in some for node in self._block(each, level, name) if node is not None]
            shown += [h.div(".charts")[nodes]] if is_figure else nodes
        return shown

    def _block(self, block: model.Block, level: int, name: str) -> Iterator[Node]:
        match block:
            case model.Table():
                yield table(block, name=f"{name}, table")
            case model.Figure():
                heading = _HEADINGS[level][_titled(block.title, block)]
                numbers = None if block.table is None else folded("numbers", table(block.table, name=block.title))
                drawings = h.div(".drawings")[[each.draw() for each in block.drawings]]
                yield h.figure(".metric", aria_label=one_line(block.title))[h.figcaption[heading], drawings, numbers]
            case model.Folded():
                yield folded(block.title, self.show(block.blocks, level, block.title))
            case model.Section():
                yield self._section(block, level)
            case model.Text():
                yield h.p(class_=block.tone or None)[untrusted_text(block.text)]
            case model.Bullets():
                yield bullet_list(block.lines)
            case model.Links():
                links = [h.li[link(each.url, each.title)] for each in block.links]
                yield h.ul[links] if links else None
            case model.Legend():
                yield h.dl[
                    [(h.dt[untrusted_text(word)], h.dd[untrusted_text(meaning)]) for word, meaning in block.meanings]
                ]
            case model.Drawing():
                yield block.draw()
            case _:
                assert_never(block)

    def _section(self, section: model.Section, level: int) -> Node:
        if not (content := self.show(section.blocks, level + 1, section.title)):
            return None
        if not section.title:
            return h.section[content]
        anchor = section.anchor or f"section-{next(self._numbers)}"
        heading = _HEADINGS[level](id=anchor)[_titled(section.title, section)]
        return h.section(aria_labelledby=anchor)[heading, content]
