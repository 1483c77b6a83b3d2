"""Plain tables and lines of reports that are not about a run."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import Literal

from rich.table import Table
from rich.text import Text

from pytest_ldos.text import visible


def plain_table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[str] = ()) -> Table:
    """A table without lines: the first column and those named in `left` to the left, others to the right.

    Args:
        titles: may have several lines.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for number, title in enumerate(titles):
        justify: Literal["left", "right"] = "left" if number == 0 or title in left else "right"
        shown = title if number else "\n".join(f"  {each}" for each in title.split("\n"))
        table.add_column(Text(visible(shown)), justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(visible(cell if number else f"  {cell}")) for number, cell in enumerate(row)))
    return table


def line(text: str, style: str = "") -> Text:
    """A line that stays whole: paths in it are to be copied."""
    return Text(visible(text), style=style, no_wrap=True, overflow="ignore")


def wrapped(text: str, width: int, *, indent: int = 0, style: str = "") -> list[Text]:
    """A sentence on as many lines as it needs; none for an empty one."""
    first, rest = " " * indent, " " * (indent + 2)
    lines = textwrap.wrap(
        visible(text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line(each, style) for each in lines]
