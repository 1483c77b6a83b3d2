"""Page in GitHub's Markdown, made of untrusted words.

Untrusted words are shown literally: they cannot make a link, a mention, a table cell or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NewType, assert_never

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.show.page import model

Markdown = NewType("Markdown", str)
"""A part that is already Markdown; functions of this module make it from plain words."""

LONGEST: Final = 600  # most characters of one untrusted sentence
_ACTIVE: Final = re.compile(
    r"""[\\`*_\[\]~|]      # code, emphasis, links, cells
    |:(?=\S)|(?<=www)\.    # what GitHub makes a link of
    |^[-+](?=[-\s]|$)     # lists and rules
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NUMBERED: Final = re.compile(r"^(\d+)([.)])(?=\s|$)")
_REFERENCE: Final = re.compile(r"\b(gh-)(?=\d)", re.IGNORECASE)
"""Texts that GitHub turns into links after parsing Markdown, so that a backslash does not prevent it."""

_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "@": "@&#8288;", "#": "&#35;&#8288;"}

_SIGNS: Final[Mapping[model.Tone, str]] = {model.Tone.GOOD: "✅", model.Tone.BAD: "❌", model.Tone.DOUBT: "⚠️"}


def escape(text: str) -> Markdown:
    """Untrusted text as one line without meaning to Markdown, HTML or GitHub."""
    line = one_line(text).strip()
    shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
    inactive = _NUMBERED.sub(r"\1\\\2", _ACTIVE.sub(r"\\\g<0>", shown))
    without_html = "".join(_ENTITIES.get(character, character) for character in inactive)
    return Markdown(_REFERENCE.sub(r"\1&#8288;", without_html))


def join(parts: Iterable[Markdown]) -> Rendered:
    return Rendered("\n\n".join(part for part in parts if part) + "\n")


def heading(level: int, text: str) -> Markdown:
    return Markdown(f"{'#' * level} {escape(text)}")


def strong(text: str) -> Markdown:
    return Markdown(f"**{escape(text)}**")


def small(lines: Iterable[str]) -> Markdown:
    return Markdown("\n".join(f"<sub>{escape(line)}</sub>" for line in lines))


def signed(before: str, badge: model.Badge | None) -> str:
    """Words, then a verdict or state; the sign before both repeats it."""
    if badge is None:
        return before
    return " ".join(each for each in (_SIGNS.get(badge.tone, ""), before, badge.text) if each)


def table(shown: model.Table) -> Markdown:
    """A table without its drawings; nothing without rows."""
    if not shown.rows:
        return Markdown("")
    drawn = {place for row in shown.rows for place, cell in enumerate(row) if isinstance(cell, model.Drawing)}
    places = [place for place in range(len(shown.columns)) if place not in drawn]
    columns = [shown.columns[place] for place in places]
    numbers = {number for number, column in enumerate(columns) if column.is_number}
    rows = ([escape(_words(row[place])) for place in places] for row in shown.rows)
    return grid([escape(column.title) for column in columns], rows, numbers=numbers)


def grid(head: Sequence[Markdown], rows: Iterable[Sequence[Markdown]], *, numbers: Collection[int] = ()) -> Markdown:
    """A table of cells that are already Markdown; columns whose indices are in `numbers` are right-aligned."""
    sides = ["--:" if place in numbers else ":--" for place in range(len(head))]
    return Markdown("\n".join(f"| {' | '.join(cells)} |" for cells in (head, sides, *rows)))


def _words(cell: model.Cell) -> str:
    if isinstance(cell, model.Badge):
        return signed("", cell)
    return cell.text if isinstance(cell, model.Words) else str(cell)


_TOP = 2  # level of a page's heading, because reports are embedded in other pages
_LOWEST = 3  # level below which a heading would be smaller than the text, and is bold words instead


def render(page: model.Page) -> Rendered:
    contents = [] if page.contents is None else [table(page.contents)]
    parts = [*contents, *_parts(page.blocks, _TOP + 1)]
    last = small([*page.setting, *([page.made] if page.made else [])])
    return join([heading(_TOP, signed(page.title, page.badge)), escape(page.answer), *parts, last])


def _parts(blocks: Iterable[model.Block], level: int) -> Iterator[Markdown]:
    for each in blocks:
        yield from _block(each, level)


def _block(block: model.Block, level: int) -> Iterator[Markdown]:
    match block:
        case model.Text():
            yield small([block.text]) if block.tone is model.Tone.QUIET else escape(block.text)
        case model.Bullets():
            items = Markdown("\n".join(f"- {escape(line)}" for line in block.lines))
            yield small(block.lines) if block.tone is model.Tone.QUIET else items
        case model.Links():
            yield Markdown(" · ".join(f"[{escape(link.title)}]({link.url})" for link in block.links))
        case model.Table():
            yield strong(block.title) if block.title and block.rows else Markdown("")
            yield table(block)
        case model.Figure():
            numbers = () if block.table is None else (block.table,)
            yield from _titled(signed(block.title, block.badge), numbers, level)
        case model.Folded():
            content = "" if block.is_long else "\n\n".join(part for part in _parts(block.blocks, level) if part)
            if content:
                yield Markdown(f"<details><summary>{escape(block.title)}</summary>\n\n{content}\n\n</details>")
        case model.Section():
            yield from _titled(signed(block.title, block.badge), block.blocks, level)
        case model.Drawing() | model.Legend():
            return
        case _:
            assert_never(block)


def _titled(title: str, blocks: Iterable[model.Block], level: int) -> Iterator[Markdown]:
    parts = [part for part in _parts(blocks, level + 1) if part]
    if parts and title:
        yield heading(level, title) if level <= _LOWEST else strong(title)
    yield from parts
