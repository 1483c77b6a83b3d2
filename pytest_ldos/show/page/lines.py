"""Lines for a terminal: words are made safe when a line gets them, and nothing but lines is printed."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.text import Text

from pytest_ldos.base.text import Rendered, one_line, without_commands
from pytest_ldos.show.page.model import Tone, Words

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
    """A line that stays whole, however long it is: paths in it are to be copied."""

    pieces: tuple[Words, ...] = ()


def line(*pieces: str | Words, tone: Tone = Tone.PLAIN) -> Line:
    """A line of some pieces; an empty one without any.

    Args:
        tone: of those that have none of their own.
    """
    return Line(tuple(each if isinstance(each, Words) else Words(each, tone) for each in pieces))


def wrapped(text: str, width: int, *, indent: int = 0, hang: int = 2, tone: Tone = Tone.PLAIN) -> list[Line]:
    """A sentence on as many lines as it needs; none for an empty one.

    Args:
        hang: by how much more the lines below the first are indented.
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
    """Text as a terminal shows it; lines end with their last visible character."""
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
