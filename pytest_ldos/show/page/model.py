"""Page that says what a reader gets, and nothing of how it looks: text, lists, tables and figures in sections.

Every renderer of a format is a function of one `Page`. Words in it may come from other programs: each renderer makes
them safe.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import compress
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import one_line

if TYPE_CHECKING:
    from htpy import Node

ABSENT: Final = "–"
"""Stands for a number that does not exist."""


class Tone(StrEnum):
    """Meaning of words beside what they say; a format may show it by colour and weight."""

    PLAIN = ""
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    BAD = "bad"
    DOUBT = "doubt"


@dataclass(frozen=True)
class Words:
    """Words on one line, safe to show whoever wrote them."""

    text: str
    tone: Tone = Tone.PLAIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))

    @property
    def width(self) -> int:
        """Columns of a terminal."""
        return cell_len(self.text)


@dataclass(frozen=True)
class Badge(Words):
    """A verdict or state; formats without colours put a sign before it."""


@dataclass(frozen=True)
class Amount(Words):
    """A number in words, by whose value a page that is interactive sorts; ``None`` comes last."""

    value: float | None = None


@dataclass(frozen=True)
class Drawing:
    """A drawing in HTML, which other formats leave out.

    Attributes:
        draw: makes it; called when a page of HTML is made, because its library need not be installed.
    """

    draw: Callable[[], Node]


Cell = str | Words | Drawing


_URL: Final = re.compile(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:/[A-Za-z0-9._~/?=&%#-]*)?")


@dataclass(frozen=True)
class Link:
    """Address of further results.

    Raises:
        ConfigurationError: `url` is no address of the web that could stand in Markdown as it is.
    """

    title: str
    url: str

    def __post_init__(self) -> None:
        if _URL.fullmatch(self.url) is None:
            raise ConfigurationError(f"{self.url!r} is no address", remedy="one that begins with https://")


@dataclass(frozen=True)
class Links:
    """Addresses of further results, beside each other."""

    links: tuple[Link, ...]


class Kind(StrEnum):
    """Content of a column.

    Attributes:
        NUMBER: stands at the right, and is never cut.
        WORD: stands at the left, and is never cut.
        NAME: is broken where the table would be too wide.
        PROSE: sentences; only for the last column.
    """

    NUMBER = "number"
    WORD = "word"
    NAME = "name"
    PROSE = "prose"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        rank: order in which columns get a place where a table leaves out those that do not fit; 0 always has one.
        drawing: shown as the heading in HTML instead of the title, which is then for those who do not see it.
    """

    title: str
    kind: Kind = Kind.NUMBER
    rank: int = 0
    drawing: Drawing | None = None

    @property
    def is_number(self) -> bool:
        return self.kind is Kind.NUMBER


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells; nothing is shown of a table without rows.

    Where a column has a rank, a narrow terminal leaves out columns; otherwise it shows the table in blocks.

    Attributes:
        key: number of columns that name a row, and stand in each block.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    key: int = 1

    def without_empty(self) -> Table:
        """The table without columns in which no row has a word."""
        kept = [any(map(_is_filled, cells)) for cells in zip(*self.rows, strict=True)]
        rows = tuple(tuple(compress(row, kept)) for row in self.rows)
        return replace(self, columns=tuple(compress(self.columns, kept)), rows=rows)


def _is_filled(cell: Cell) -> bool:
    return bool(cell.text if isinstance(cell, Words) else cell)


@dataclass(frozen=True)
class Text:
    """A sentence.

    Attributes:
        is_whole: True if it stays on one line, because something in it is to be copied.
    """

    text: str
    tone: Tone = Tone.PLAIN
    is_whole: bool = False


@dataclass(frozen=True)
class Bullets:
    """Sentences, one a line; nothing is shown of an empty list.

    Attributes:
        is_whole: True if each stays on one line, because something in it is to be copied.
    """

    lines: tuple[str, ...]
    tone: Tone = Tone.PLAIN
    is_whole: bool = False


@dataclass(frozen=True)
class Legend:
    """Marks and terms of drawings with their meanings; only formats with drawings show it."""

    meanings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Drawings below a title, and the same numbers as a table, which formats without drawings show instead."""

    title: str
    drawings: tuple[Drawing, ...]
    table: Table | None = None
    badge: Badge | None = None


@dataclass(frozen=True)
class Folded:
    """Details that are shown when they are asked for; a terminal leaves them out.

    Attributes:
        is_long: True if Markdown leaves them out, too.
    """

    title: str
    blocks: tuple[Block, ...]
    is_long: bool = False


@dataclass(frozen=True)
class Section:
    """Blocks below a heading; nothing is shown of a section whose blocks show nothing.

    Attributes:
        remark: follows the title and the badge in a terminal, which shows the section for it alone, too.
        anchor: where links of the page lead to; found for it without one.
    """

    title: str
    blocks: tuple[Block, ...]
    badge: Badge | None = None
    remark: str = ""
    anchor: str = ""


Block = Text | Bullets | Links | Table | Legend | Figure | Drawing | Folded | Section


@dataclass(frozen=True, kw_only=True)
class Page:
    """A whole report.

    Attributes:
        contents: the sections that the page has; a page of HTML has it in its head.
        answer: one sentence that says what was found; a terminal begins with it instead of the title.
        setting: what was measured, with what.
        made: by what the page was made, and when.
        tone: of what a terminal begins with.
        is_interactive: True if a page of HTML sorts its tables and zooms its timelines, by a script of ours.
    """

    title: str
    blocks: tuple[Block, ...]
    contents: Table | None = None
    answer: str = ""
    setting: tuple[str, ...] = ()
    made: str = ""
    badge: Badge | None = None
    tone: Tone = Tone.STRONG
    is_interactive: bool = False


def left_out(rows: int) -> tuple[Text, ...]:
    """Sentence below a table that shows the most important rows only; none where it shows all."""
    return (Text(f"… and {rows} more (--all shows them)", Tone.QUIET),) if rows else ()
