"""Tables for a terminal: numbers are never cut, long names are broken where their parts meet."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Final

from rich.cells import cell_len

from pytest_ldos.show.report.console import Line, Words, line

GAP: Final = 2
"""Columns of a terminal between two columns of a table."""

INDENT: Final = 2
"""Columns of a terminal before a table that belongs to a line above it."""

_NARROWEST: Final = 16
"""Columns that names get in any case."""

_PARTS: Final = re.compile(r".+?(?:::|\s+|(?=[/(<\[@])|$)")
"""Parts of a name of C++, of ROS 2, or of a path: a slash or bracket begins one, colons and spaces end one."""

_PARTS_OF_PARTS: Final = re.compile(r".+?(?:(?<=[^\W_])[_.,;-]+(?=\w)|$)")
"""Words of a part that is longer than a line."""

Cell = str | Words


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        title: lines below each other.
        is_text: stands to the left, as numbers do not.
        is_name: does, too, and is broken where the table would be too wide.
        rank: in which order columns get a place where not all fit; 0 has one in any case.
    """

    title: tuple[Words, ...]
    is_text: bool = False
    is_name: bool = False
    rank: int = 0

    @property
    def is_left(self) -> bool:
        return self.is_text or self.is_name


def column(*title: str, is_text: bool = False, is_name: bool = False, rank: int = 0) -> Column:
    """A column; its title has a line for each text."""
    return Column(title=tuple(map(Words, title)), is_text=is_text, is_name=is_name, rank=rank)


def plain_table(
    titles: Sequence[str], rows: Sequence[Sequence[Cell]], *, width: int, left: Collection[str] = (), key: int = 1
) -> list[Line]:
    """A table without lines, indented, in blocks where it is too wide.

    Args:
        left: titles of columns of words beside those that name a row; others stand to the right.
        key: columns that name a row.
    """
    columns = [column(each, is_name=place < key, is_text=each in left) for place, each in enumerate(titles)]
    return split_table(columns, rows, key=key, width=width, indent=INDENT)


def chosen_table(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> list[Line]:
    """A table of the columns that have a place and are not empty."""
    chosen = _choose(columns, rows, width)
    rows = [[row[place] for place in chosen] for row in rows]
    return tabulate([columns[place] for place in chosen], rows, width=width, style="bold")


def tabulate(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    width: int | None = None,
    indent: int = 0,
    style: str = "dim",
) -> list[Line]:
    """Lines of a table.

    Args:
        width: columns of the terminal; names are broken so that the table fits. As wide as it is without one.
        style: of the titles.
    """
    cells = [[_words(cell) for cell in row] for row in rows]
    widths = _widths(columns, cells)
    if width is not None:
        widths = _narrowed(columns, widths, width - indent)
    titles = [[Words(words.text, style) for words in each.title] for each in columns]
    heading = _side_by_side(titles, columns, widths, indent)
    body = ([_broken(cell, limit) for cell, limit in zip(row, widths, strict=True)] for row in cells)
    return [*heading, *(each for row in body for each in _side_by_side(row, columns, widths, indent))]


def split_table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, key: int, width: int, indent: int = 0
) -> list[Line]:
    """A table that is as wide as the terminal: with titles on several lines, else in blocks.

    Numbers are never cut.

    Args:
        key: columns that name a row, and stand in each block.
    """
    lines: list[Line] = []
    if _natural_width(columns, rows) > width - indent:
        columns = [_stacked(each, [_words(row[place]) for row in rows]) for place, each in enumerate(columns)]
    for places in _blocks(columns, rows, key, width - indent):
        block = [[row[place] for place in places] for row in rows]
        lines += [line()] if lines else []
        lines += tabulate([columns[place] for place in places], block, width=width, indent=indent)
    return lines


def _stacked(each: Column, cells: Sequence[Words]) -> Column:
    """A title no wider than what stands below it, or than its longest word."""
    if each.is_name:
        return each
    words = [word for part in each.title for word in part.text.split()]
    widest = max((cell_len(word) for word in words), default=0)
    widest = max([widest, *(cell.width for cell in cells)])
    return replace(each, title=tuple(part for whole in each.title for part in _broken(whole, widest)))


def _natural_width(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> int:
    """Columns of a terminal that a table takes as it is."""
    return _whole(_widths(columns, [[_words(cell) for cell in row] for row in rows]))


def _blocks(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], key: int, width: int) -> list[list[int]]:
    """Places of columns, block by block: as few blocks as can be, none much smaller than the others."""
    widths = _widths(columns, [[_words(cell) for cell in row] for row in rows])
    least = _narrowed(columns, widths, 0)
    names, values = list(range(key)), range(key, len(columns))
    for count in range(1, len(values)):
        ends = accumulate(((len(values) + part) // count for part in range(count)), initial=key)
        blocks = [[*names, *range(*each)] for each in pairwise(ends)]
        if all(_whole([least[place] for place in block]) <= width for block in blocks):
            return blocks
    return [[*names, place] for place in values] or [names]


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _choose(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> list[int]:
    """Places of the columns that fit, those that matter more first; none that is empty. In the order of display."""
    cells = [[_words(cell) for cell in row] for row in rows]
    widths, chosen = _widths(columns, cells), []
    for place in sorted(range(len(columns)), key=lambda place: columns[place].rank):
        is_empty = not any(row[place].text.strip() for row in cells)
        if not is_empty and (columns[place].rank == 0 or widths[place] + GAP <= width):
            chosen.append(place)
            width -= widths[place] + GAP
    return sorted(chosen)


def _words(cell: Cell) -> Words:
    return cell if isinstance(cell, Words) else Words(cell)


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[Words]]) -> list[int]:
    return [
        max(*(words.width for words in (*each.title, *(row[place] for row in cells))), 0)
        for place, each in enumerate(columns)
    ]


def _narrowed(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """Widths with which a table fits, if it can: the longest names give way."""
    room -= GAP * (len(columns) - 1)
    room -= sum(width for each, width in zip(columns, widths, strict=True) if not each.is_name)
    longest = max((width for each, width in zip(columns, widths, strict=True) if each.is_name), default=0)
    while longest > _NARROWEST and _taken(columns, widths, longest) > room:
        longest -= 1
    return [min(width, longest) if each.is_name else width for each, width in zip(columns, widths, strict=True)]


def _taken(columns: Sequence[Column], widths: Sequence[int], longest: int) -> int:
    """By names, where none has more than `longest`."""
    return sum(min(width, longest) for each, width in zip(columns, widths, strict=True) if each.is_name)


def _broken(words: Words, width: int) -> list[Words]:
    """Words on as many lines as they need, broken where parts meet; what has no parts is cut."""
    lines = [""]
    for part in _parts(words.text, width) if words.width > width else [words.text]:
        if cell_len(lines[-1] + part.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
        while cell_len(lines[-1].rstrip()) > width:
            lines[-1:] = _cut(lines[-1], width)
    return [Words(each.rstrip(), words.style) for each in lines]


def _parts(text: str, width: int) -> Iterator[str]:
    for part in _PARTS.findall(text):
        yield from [part] if cell_len(part.rstrip()) <= width else _PARTS_OF_PARTS.findall(part)


def _cut(text: str, width: int) -> tuple[str, str]:
    """A text that is longer than `width`, in two."""
    place = next(end for end in range(1, len(text) + 1) if cell_len(text[:end]) > width)
    return text[: max(1, place - 1)], text[max(1, place - 1) :]


def _side_by_side(
    cells: Sequence[Sequence[Words]], columns: Sequence[Column], widths: Sequence[int], indent: int
) -> list[Line]:
    """The lines of a row of cells, each of which may have several."""
    height = max(map(len, cells), default=0)
    lines = []
    for number in range(height):
        pieces: list[str | Words] = [" " * indent]
        for words, each, width in zip(cells, columns, widths, strict=True):
            cell = words[number] if number < len(words) else Words("")
            space = " " * (width - cell.width)
            pieces += [cell, space] if each.is_left else [space, cell]
            pieces.append(" " * GAP)
        lines.append(line(*pieces[:-1]))
    return lines
