"""Tables and lines for a terminal; numbers are never cut, and words are made safe."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from pytest_ldos.base.text import Rendered, one_line, without_commands
from pytest_ldos.show.page.model import Cell, Column, Kind, Table, Tone, Words

_STYLES: Final[Mapping[Tone, str]] = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.QUIET: "dim",
    Tone.GOOD: "green",
    Tone.BAD: "bold red",
    Tone.DOUBT: "yellow",
}


@dataclass(frozen=True)
class Line:
    """A line that is never broken, because it may contain paths to copy."""

    pieces: tuple[Words, ...] = ()


def line(*pieces: str | Words, tone: Tone = Tone.PLAIN) -> Line:
    """A line made of pieces, which may be none.

    Args:
        tone: of pieces without one.
    """
    return Line(tuple(each if isinstance(each, Words) else Words(each, tone) for each in pieces))


def wrapped(text: str, width: int, *, indent: int = 0, hang: int = 2, tone: Tone = Tone.PLAIN) -> list[Line]:
    """A sentence broken into lines; none for an empty sentence.

    Args:
        hang: additional indentation of lines after the first.
    """
    lines = textwrap.wrap(
        one_line(text),
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line(each, tone=tone) for each in lines]


def print_to_text(lines: Iterable[Line], *, color: bool) -> Rendered:
    """Text as shown in a terminal, without trailing spaces."""
    sink = io.StringIO()
    console = Console(
        file=sink,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        legacy_windows=False,
        soft_wrap=True,
    )
    for each in lines:
        console.print(Text.assemble(*((piece.text, _STYLES[piece.tone]) for piece in each.pieces)))
    text = "\n".join(shown.rstrip() for shown in sink.getvalue().splitlines())
    return Rendered(f"{without_commands(text)}\n")


GAP: Final = 2
"""Width between two columns of a table, in columns of a terminal."""

_NARROWEST: Final = 16
"""Least width of names."""

_PARTS: Final = re.compile(r".+?(?:::|\s+|(?=[/(<\[@])|$)")
"""Parts of a C++ or ROS 2 name, or of a path: a slash or bracket begins a part, colons and spaces end one."""

_PARTS_OF_PARTS: Final = re.compile(r".+?(?:(?<=[^\W_])[_.,;-]+(?=\w)|$)")
"""Words within a part that is longer than a line."""

INDENT: Final = 2
"""Indentation of a table, in columns of a terminal."""


@dataclass(frozen=True)
class _Laid:
    """A column, its title as lines, and its cells from top to bottom."""

    column: Column
    title: tuple[Words, ...]
    cells: tuple[Words, ...]

    @property
    def width(self) -> int:
        """Natural width, in columns of a terminal."""
        return max((words.width for words in (*self.title, *self.cells)), default=0)

    @property
    def is_left(self) -> bool:
        return not self.column.is_number

    @property
    def gives_way(self) -> bool:
        """True if its cells are broken when the table would be too wide."""
        return self.column.kind in {Kind.NAME, Kind.PROSE}

    @property
    def is_empty(self) -> bool:
        return not any(cell.text.strip() for cell in self.cells)


def draw_table(table: Table, width: int) -> list[Line]:
    """Lines of a table. A table that is too wide leaves out columns if they are ranked, or else becomes blocks.

    Empty columns are left out. Titles are broken into lines if that makes room. Numbers are never cut.
    """
    laid = [each for place, each in _lay(table) if place < table.key or not each.is_empty]
    room = width - INDENT
    if any(each.column.rank for each in laid):
        return _lines(_choose(laid, room), room)
    if _whole([each.width for each in laid]) > room:
        laid = [_stacked(each) for each in laid]
    lines: list[Line] = []
    for block in _blocks(laid, table.key, room):
        lines += [line()] if lines else []
        lines += _lines(block, room)
    return lines


def _lay(table: Table) -> Iterator[tuple[int, _Laid]]:
    """Columns with their indices; a column of drawings is empty, and a table without titles has no heading."""
    has_titles = any(column.title for column in table.columns)
    for place, column in enumerate(table.columns):
        title = (Words(column.title),) if has_titles else ()
        yield place, _Laid(column, title, tuple(_words(row[place]) for row in table.rows))


def _words(cell: Cell) -> Words:
    return cell if isinstance(cell, Words) else Words(cell if isinstance(cell, str) else "")


def _stacked(laid: _Laid) -> _Laid:
    """A title broken to the width of its column's cells, or of its longest word."""
    if laid.gives_way:
        return laid
    words = [word for part in laid.title for word in part.text.split()]
    widest = max([0, *map(cell_len, words), *(cell.width for cell in laid.cells)])
    return replace(laid, title=tuple(part for whole in laid.title for part in _broken(whole, widest)))


def _blocks(laid: Sequence[_Laid], key: int, room: int) -> list[list[_Laid]]:
    """Columns of each block: as few blocks as possible, of similar size."""
    least = _narrowed(laid, 0)
    names, values = list(range(key)), range(key, len(laid))
    for count in range(1, len(values)):
        ends = accumulate(((len(values) + part) // count for part in range(count)), initial=key)
        blocks = [[*names, *range(*each)] for each in pairwise(ends)]
        if all(_whole([least[place] for place in block]) <= room for block in blocks):
            return [[laid[place] for place in block] for block in blocks]
    return [[laid[place] for place in (*names, value)] for value in values] or [list(laid)]


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _choose(laid: Sequence[_Laid], room: int) -> list[_Laid]:
    """Columns that fit, chosen by rank, in the order of display."""
    chosen = []
    for place in sorted(range(len(laid)), key=lambda place: laid[place].column.rank):
        each = laid[place]
        if each.column.rank == 0 or each.width + GAP <= room:
            chosen.append(place)
            room -= each.width + GAP
    return [laid[place] for place in sorted(chosen)]


def _lines(laid: Sequence[_Laid], room: int) -> list[Line]:
    """The heading and the lines of each row."""
    widths = _narrowed(laid, room)
    titles = [[Words(words.text, Tone.QUIET) for words in each.title] for each in laid]
    rows = zip(*(each.cells for each in laid), strict=True)
    body = ([_broken(cell, limit) for cell, limit in zip(row, widths, strict=True)] for row in rows)
    return [each for row in (titles, *body) for each in _side_by_side(row, laid, widths)]


def _narrowed(laid: Sequence[_Laid], room: int) -> list[int]:
    """Widths with which a table fits, if possible, after narrowing the longest names."""
    widths = [each.width for each in laid]
    names = [each.width for each in laid if each.gives_way]
    room -= _whole(widths) - sum(names)
    longest = max(names, default=0)
    while longest > _NARROWEST and sum(min(width, longest) for width in names) > room:
        longest -= 1
    return [min(each.width, longest) if each.gives_way else each.width for each in laid]


def _broken(words: Words, width: int) -> list[Words]:
    """Words broken into lines between parts; a part that is too long is cut."""
    lines = [""]
    for part in _parts(words.text, width) if words.width > width else [words.text]:
        if cell_len(lines[-1] + part.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
        while cell_len(lines[-1].rstrip()) > width:
            lines[-1:] = _cut(lines[-1], width)
    return [Words(each.rstrip(), words.tone) for each in lines]


def _parts(text: str, width: int) -> Iterator[str]:
    for part in _PARTS.findall(text):
        yield from [part] if cell_len(part.rstrip()) <= width else _PARTS_OF_PARTS.findall(part)


def _cut(text: str, width: int) -> tuple[str, str]:
    """Splits a text that is longer than `width`."""
    place = next(end for end in range(1, len(text) + 1) if cell_len(text[:end]) > width)
    return text[: max(1, place - 1)], text[max(1, place - 1) :]


def _side_by_side(cells: Sequence[Sequence[Words]], laid: Sequence[_Laid], widths: Sequence[int]) -> list[Line]:
    """The lines of a row whose cells may have several lines."""
    height = max(map(len, cells), default=0)
    lines = []
    for number in range(height):
        pieces: list[str | Words] = [" " * INDENT]
        for words, each, width in zip(cells, laid, widths, strict=True):
            cell = words[number] if number < len(words) else Words("")
            space = " " * (width - cell.width)
            pieces += [cell, space] if each.is_left else [space, cell]
            pieces.append(" " * GAP)
        lines.append(line(*pieces[:-1]))
    return lines
