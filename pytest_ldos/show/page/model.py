"""Content of a page, independent of its format: text, lists, tables and figures in sections.

Every renderer of a format is a function of one `Page`. Words in it may be untrusted; each renderer escapes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from itertools import compress
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.text import one_line

if TYPE_CHECKING:
    from htpy import Node

ABSENT: Final = "–"  # shown for a missing number


class Tone(StrEnum):
    PLAIN = ""
    STRONG = "strong"
    QUIET = "quiet"
    GOOD = "good"
    BAD = "bad"
    DOUBT = "doubt"


@dataclass(frozen=True)
class Words:
    """Untrusted words on one line, made safe to show."""

    text: str
    tone: Tone = Tone.PLAIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))

    @property
    def width(self) -> int:
        return cell_len(self.text)


@dataclass(frozen=True)
class Badge(Words):
    """A verdict or state; formats without colours prefix a sign."""


@dataclass(frozen=True)
class Amount(Words):
    """A number in words; an interactive page sorts by its value, ``None`` last."""

    value: float | None = None


@dataclass(frozen=True)
class Drawing:
    """A drawing in HTML; other formats leave it out, and do not call `draw`, because its library is optional."""

    draw: Callable[[], Node]


def drawn_by(function: str, *shown: object, **how: object) -> Drawing:
    """A drawing by a function ``MODULE:NAME``, which is imported when it is called."""
    module, _, name = function.partition(":")
    return Drawing(lambda: getattr(import_module(module), name)(*shown, **how))


Cell = str | Words | Drawing


_URL: Final = re.compile(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:/[A-Za-z0-9._~/?=&%#-]*)?")


@dataclass(frozen=True)
class Link:
    """Address of further results; raises a `ConfigurationError` unless it can be used unescaped in Markdown."""

    title: str
    url: str

    def __post_init__(self) -> None:
        if _URL.fullmatch(self.url) is None:
            raise ConfigurationError(f"{self.url!r} is not an address", remedy="one that begins with https://")


@dataclass(frozen=True)
class Links:
    links: tuple[Link, ...]


class Kind(StrEnum):
    NUMBER = "number"  # right-aligned, never cut
    WORD = "word"  # left-aligned, never cut
    NAME = "name"  # broken if the table would be too wide
    PROSE = "prose"  # sentences; only for the last column


@dataclass(frozen=True)
class Column:
    title: str
    kind: Kind = Kind.NUMBER
    rank: int = 0  # priority of columns in a table that leaves out those that do not fit; 0 is always shown
    drawing: Drawing | None = None  # heading in HTML instead of the title, which remains as the accessible name

    @property
    def is_number(self) -> bool:
        return self.kind is Kind.NUMBER


def numbers(*titles: str) -> tuple[Column, ...]:
    return tuple(map(Column, titles))


def words(*titles: str) -> tuple[Column, ...]:
    return tuple(Column(each, Kind.WORD) for each in titles)


def names(*titles: str) -> tuple[Column, ...]:
    return tuple(Column(each, Kind.NAME) for each in titles)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells, of which the first `key` name the row and are repeated in each block; not shown without rows.

    If columns have ranks, a narrow terminal leaves out columns; otherwise it shows the table in blocks.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    key: int = 1

    def without_empty(self) -> Table:
        filled = (tuple(cell.text if isinstance(cell, Words) else cell for cell in row) for row in self.rows)
        kept = [any(cells) for cells in zip(*filled, strict=True)]
        rows = tuple(tuple(compress(row, kept)) for row in self.rows)
        return replace(self, columns=tuple(compress(self.columns, kept)), rows=rows)


@dataclass(frozen=True)
class Text:
    """A sentence; it stays on one line if `is_whole`, because it contains text to copy."""

    text: str
    tone: Tone = Tone.PLAIN
    is_whole: bool = False


@dataclass(frozen=True)
class Bullets:
    """Sentences, none if empty; each stays on one line if `is_whole`, because it contains text to copy."""

    lines: tuple[str, ...]
    tone: Tone = Tone.PLAIN
    is_whole: bool = False


@dataclass(frozen=True)
class Legend:
    """Marks and terms of drawings with their meanings; shown only by formats with drawings."""

    meanings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Drawings below a title, and the same numbers as a table for formats without drawings."""

    title: str
    drawings: tuple[Drawing, ...]
    table: Table | None = None
    badge: Badge | None = None


@dataclass(frozen=True)
class Folded:
    """Details that are shown on request; a terminal leaves them out, Markdown too if `is_long`."""

    title: str
    blocks: tuple[Block, ...]
    is_long: bool = False


@dataclass(frozen=True)
class Section:
    """Blocks below a heading; a section whose blocks show nothing is not shown."""

    title: str
    blocks: tuple[Block, ...]
    badge: Badge | None = None
    remark: str = ""  # follows the title and the badge in a terminal; a section with a remark is always shown
    anchor: str = ""  # target of links in the page; generated if empty


Block = Text | Bullets | Links | Table | Legend | Figure | Drawing | Folded | Section


@dataclass(frozen=True, kw_only=True)
class Page:
    title: str
    blocks: tuple[Block, ...]
    contents: Table | None = None  # list of the page's sections; shown at the top in HTML
    answer: str = ""  # the result in one sentence; a terminal begins with it instead of the title
    setting: tuple[str, ...] = ()  # facts about the measurement and its environment
    made: str = ""  # program that made the page, and time
    badge: Badge | None = None
    tone: Tone = Tone.STRONG  # of the first line in a terminal
    is_interactive: bool = False  # True if a page of HTML has a script that sorts tables and zooms timelines


def left_out(rows: int) -> tuple[Text, ...]:
    """Sentence below a table that shows only the most important rows; none if it shows all."""
    return (Text(f"… and {rows} more (--all shows them)", Tone.QUIET),) if rows else ()
