"""Parts of a text in GitHub's Markdown, each made of words that may come from other programs.

These are shown as they were written and can do nothing else: no link, no mention, no table cell of their own, no HTML.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NewType

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.show.page.model import Badge, Cell, Drawing, Link, Table, Tone, Words

Markdown = NewType("Markdown", str)
"""A part that is Markdown already; functions of this module make them of plain words."""

LONGEST: Final = 600
"""Characters of one foreign sentence."""

_ACTIVE: Final = re.compile(
    r"""[\\`*_\[\]~|]      # code, emphasis, links, cells
    |:(?=\S)|(?<=www)\.    # what GitHub makes a link of
    |^[-+](?=[-\s]|$)     # lists and rules
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NUMBERED: Final = re.compile(r"^(\d+)([.)])(?=\s|$)")
_REFERENCE: Final = re.compile(r"\b(gh-)(?=\d)", re.IGNORECASE)
"""GitHub makes links of these after it has read Markdown, so that no backslash keeps it from that."""

_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "@": "@&#8288;", "#": "&#35;&#8288;"}

_SIGNS: Final[Mapping[Tone, str]] = {Tone.GOOD: "✅", Tone.BAD: "❌", Tone.DOUBT: "⚠️"}


def escape(text: str) -> Markdown:
    """Foreign text as one line that means nothing to Markdown, HTML or GitHub."""
    line = one_line(text).strip()
    shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
    inactive = _NUMBERED.sub(r"\1\\\2", _ACTIVE.sub(r"\\\g<0>", shown))
    without_html = "".join(_ENTITIES.get(character, character) for character in inactive)
    return Markdown(_REFERENCE.sub(r"\1&#8288;", without_html))


def join(parts: Iterable[Markdown]) -> Rendered:
    """A whole text of those parts that are not empty."""
    return Rendered("\n\n".join(part for part in parts if part) + "\n")


def heading(level: int, text: str) -> Markdown:
    return Markdown(f"{'#' * level} {escape(text)}")


def strong(text: str) -> Markdown:
    return Markdown(f"**{escape(text)}**")


def bullets(lines: Iterable[str]) -> Markdown:
    """A list; nothing where there are no lines."""
    return Markdown("\n".join(f"- {escape(line)}" for line in lines))


def small(lines: Iterable[str]) -> Markdown:
    """Sentences in small letters."""
    return Markdown("\n".join(f"<sub>{escape(line)}</sub>" for line in lines))


def folded(title: str, parts: Iterable[Markdown]) -> Markdown:
    """Parts that are shown when they are asked for; nothing where there are none."""
    content = "\n\n".join(part for part in parts if part)
    if not content:
        return Markdown("")
    return Markdown(f"<details><summary>{escape(title)}</summary>\n\n{content}\n\n</details>")


def links(them: Sequence[Link]) -> Markdown:
    return Markdown(" · ".join(f"[{escape(link.title)}]({link.url})" for link in them))


def signed(before: str, badge: Badge | None) -> str:
    """Words, then a verdict or state; the sign before both only repeats it."""
    if badge is None:
        return before
    return " ".join(each for each in (_SIGNS.get(badge.tone, ""), before, badge.text) if each)


def table(shown: Table) -> Markdown:
    """A table without its drawings; nothing where there are no rows."""
    if not shown.rows:
        return Markdown("")
    drawn = {place for row in shown.rows for place, cell in enumerate(row) if isinstance(cell, Drawing)}
    places = [place for place in range(len(shown.columns)) if place not in drawn]
    columns = [shown.columns[place] for place in places]
    numbers = {number for number, column in enumerate(columns) if column.is_number}
    rows = ([escape(_shown(row[place])) for place in places] for row in shown.rows)
    return grid([escape(column.title) for column in columns], rows, numbers=numbers)


def grid(head: Sequence[Markdown], rows: Iterable[Sequence[Markdown]], *, numbers: Collection[int] = ()) -> Markdown:
    """A table of cells that are Markdown already.

    Args:
        numbers: places of columns that stand at the right.
    """
    sides = ["--:" if place in numbers else ":--" for place in range(len(head))]
    return Markdown("\n".join(f"| {' | '.join(cells)} |" for cells in (head, sides, *rows)))


def _shown(cell: Cell) -> str:
    if isinstance(cell, Badge):
        return signed("", cell)
    return cell.text if isinstance(cell, Words) else str(cell)
