"""Pages for a terminal or a log: lines, tables and blocks."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import Final, assert_never

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text as RichText

from pytest_ldos.base.text import Rendered, one_line, without_commands
from pytest_ldos.show.page import model

_STYLES: Final[Mapping[model.Tone, str]] = {
    model.Tone.PLAIN: "",
    model.Tone.STRONG: "bold",
    model.Tone.QUIET: "dim",
    model.Tone.GOOD: "green",
    model.Tone.BAD: "bold red",
    model.Tone.DOUBT: "yellow",
}


Line = tuple[model.Words, ...]  # never broken, because it may contain paths to copy


def line(*pieces: str | model.Words, tone: model.Tone = model.Tone.PLAIN) -> Line:
    """A line made of pieces, which may be none; `tone` is that of pieces without one."""
    return tuple(each if isinstance(each, model.Words) else model.Words(each, tone) for each in pieces)


def wrapped(text: str, width: int, *, indent: int = 0, tone: model.Tone = model.Tone.PLAIN) -> list[Line]:
    """A sentence broken into lines, those after the first indented by two more; none for an empty sentence."""
    lines = textwrap.wrap(
        one_line(text),
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + INDENT),
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
        console.print(RichText.assemble(*((piece.text, _STYLES[piece.tone]) for piece in each)))
    text = "\n".join(shown.rstrip() for shown in sink.getvalue().splitlines())
    return Rendered(f"{without_commands(text)}\n")


NARROWEST: Final = 80  # least width, in columns of a terminal, to which a page is fitted
GAP: Final = 2  # width between two columns of a table, in columns of a terminal
_NARROWEST: Final = 16  # least width of names
_PARTS: Final = re.compile(r".+?(?:::|\s+|(?=[/(<\[@])|$)")
"""Parts of a C++ or ROS 2 name, or of a path: a slash or bracket begins a part, colons and spaces end one."""

_PARTS_OF_PARTS: Final = re.compile(r".+?(?:(?<=[^\W_])[_.,;-]+(?=\w)|$)")
"""Words within a part that is longer than a line."""

INDENT: Final = 2  # indentation of a table, in columns of a terminal


@dataclass(frozen=True)
class _Laid:
    column: model.Column
    title: tuple[model.Words, ...]
    cells: tuple[model.Words, ...]

    @property
    def width(self) -> int:
        return max((words.width for words in (*self.title, *self.cells)), default=0)

    @property
    def gives_way(self) -> bool:
        """True if its cells are broken when the table would be too wide."""
        return self.column.kind in {model.Kind.NAME, model.Kind.PROSE}


def draw_table(table: model.Table, width: int) -> list[Line]:
    """Lines of a table. A table that is too wide leaves out columns if they are ranked, or else becomes blocks.

    Empty columns are left out. Titles are broken into lines if that makes room. Numbers are never cut.
    """
    has_titles = any(column.title for column in table.columns)
    laid: list[_Laid] = []
    for place, column in enumerate(table.columns):
        cells = tuple(_words(row[place]) for row in table.rows)
        if place < table.key or any(cell.text.strip() for cell in cells):
            laid.append(_Laid(column, (model.Words(column.title),) if has_titles else (), cells))
    room = width - INDENT
    if any(each.column.rank for each in laid):
        return _rows(_choose(laid, room), room)
    if _whole([each.width for each in laid]) > room:
        laid = [_stacked(each) for each in laid]
    lines: list[Line] = []
    for block in _blocks(laid, table.key, room):
        lines += [line()] if lines else []
        lines += _rows(block, room)
    return lines


def _words(cell: model.Cell) -> model.Words:
    return cell if isinstance(cell, model.Words) else model.Words(cell if isinstance(cell, str) else "")


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


def _rows(laid: Sequence[_Laid], room: int) -> list[Line]:
    widths = _narrowed(laid, room)
    titles = [[model.Words(words.text, model.Tone.QUIET) for words in each.title] for each in laid]
    rows = zip(*(each.cells for each in laid), strict=True)
    body = ([_broken(cell, limit) for cell, limit in zip(row, widths, strict=True)] for row in rows)
    lines = []
    for cells in (titles, *body):
        for number in range(max(map(len, cells), default=0)):
            pieces: list[str | model.Words] = [" " * INDENT]
            for words, each, width in zip(cells, laid, widths, strict=True):
                cell = words[number] if number < len(words) else model.Words("")
                space = " " * (width - cell.width)
                pieces += [space, cell] if each.column.is_number else [cell, space]
                pieces.append(" " * GAP)
            lines.append(line(*pieces[:-1]))
    return lines


def _narrowed(laid: Sequence[_Laid], room: int) -> list[int]:
    """Widths with which a table fits, if possible, after narrowing the longest names."""
    widths = [each.width for each in laid]
    names = [each.width for each in laid if each.gives_way]
    room -= _whole(widths) - sum(names)
    longest = max(names, default=0)
    while longest > _NARROWEST and sum(min(width, longest) for width in names) > room:
        longest -= 1
    return [min(each.width, longest) if each.gives_way else each.width for each in laid]


def _broken(words: model.Words, width: int) -> list[model.Words]:
    """Words broken into lines between parts; a part that is too long is cut."""
    lines = [""]
    for part in _parts(words.text, width) if words.width > width else [words.text]:
        if cell_len(lines[-1] + part.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
        while cell_len(lines[-1].rstrip()) > width:
            text = lines[-1]
            end = next(place for place in range(1, len(text) + 1) if cell_len(text[:place]) > width)
            lines[-1:] = text[: max(1, end - 1)], text[max(1, end - 1) :]
    return [model.Words(each.rstrip(), words.tone) for each in lines]


def _parts(text: str, width: int) -> Iterator[str]:
    for part in _PARTS.findall(text):
        yield from [part] if cell_len(part.rstrip()) <= width else _PARTS_OF_PARTS.findall(part)


def render(page: model.Page, *, width: int, color: bool) -> Rendered:
    """The page as text; only lines to copy are wider than `width`."""
    width = max(width, NARROWEST)
    lines = wrapped(page.answer or page.title, width, tone=page.tone)
    for each in page.setting:
        lines += wrapped(each, width, indent=INDENT, tone=model.Tone.QUIET)
    below = _lines(page.blocks, width)
    return print_to_text([*lines, *([line()] if lines and below else []), *below], color=color)


def _lines(blocks: Iterable[model.Block], width: int) -> list[Line]:
    lines: list[Line] = []
    is_apart = False
    for each in blocks:
        if shown := list(_block(each, width)):
            is_section = isinstance(each, model.Section | model.Figure)
            lines += [line()] if lines and (is_apart or is_section or isinstance(each, model.Table)) else []
            lines += shown
            is_apart = is_section
    return lines


def _block(block: model.Block, width: int) -> Iterator[Line]:
    match block:
        case model.Table():
            yield from _table(block, width)
        case model.Figure():
            yield from _titled(block, () if block.table is None else (block.table,), width)
        case model.Section():
            yield from _titled(block, block.blocks, width)
        case model.Text() | model.Bullets():
            lines, indent = ((block.text,), 0) if isinstance(block, model.Text) else (block.lines, INDENT)
            for each in lines:
                whole = [line(f"{' ' * indent}{each}", tone=block.tone)]
                yield from whole if block.is_whole else wrapped(each, width, indent=indent, tone=block.tone)
        case model.Links():
            yield from (line(f"{each.title}: {each.url}") for each in block.links)
        case model.Drawing() | model.Legend() | model.Folded():
            return
        case _:
            assert_never(block)


def _titled(named: model.Section | model.Figure, blocks: Iterable[model.Block], width: int) -> list[Line]:
    lines = _lines(blocks, width)
    remark = named.remark if isinstance(named, model.Section) else ""
    if not lines and not remark:
        return []
    if not (badges := [each for each in (named.badge, remark) if each]):
        return [*wrapped(named.title, width, tone=model.Tone.STRONG), *lines]
    return [line(model.Words(named.title, model.Tone.STRONG), *chain(*zip((": ", "; "), badges, strict=False))), *lines]


def _table(table: model.Table, width: int) -> Iterator[Line]:
    """The title and the table; rows with prose, which is too long for a column, are sentences."""
    if not table.rows:
        return
    yield from wrapped(table.title, width, tone=model.Tone.STRONG)
    if table.columns[-1].kind is not model.Kind.PROSE:
        yield from draw_table(table, width)
        return
    for row in table.rows:
        *names, sentence = (each.text if isinstance(each, model.Words) else str(each) for each in row)
        yield from wrapped(f"{', '.join(names)}: {sentence}", width, indent=INDENT)
