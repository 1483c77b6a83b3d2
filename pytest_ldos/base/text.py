"""Text that came from other programs, made safe to show."""

from __future__ import annotations

import re
from typing import Final, NewType

Rendered = NewType("Rendered", str)
"""A whole text that can be shown as it is: what a renderer made of foreign words. Nothing else is printed."""

_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufffe\uffff]"
    r"|[\u00ad\ufeff\U000e0000-\U000e0fff]"
)

_STYLE: Final = r"(?:\x1b\[[0-9;]*m)*"
"""Colours of ours, which may stand between the letters of a finished line."""

_COMMAND: Final = re.compile(
    rf"^((?:[^\S\n]|\x1b\[[0-9;]*m)*:{_STYLE})(:)|()(#)(?={_STYLE}#{_STYLE}[\w.-]*\[)", re.MULTILINE
)
"""``::error::`` at the beginning of a line; ``##[error]``, ``##vso[task.setvariable]`` anywhere."""


def visible(text: str) -> str:
    """`text` with control characters written out, so that none reaches a terminal.

    Line ends and tabs stay. Marks of direction are written out too, because they make text
    look like what it is not, and so is what cannot be seen, and what no encoding of files accepts.
    """
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def one_line(text: str) -> str:
    """`text` made safe as one line: no line end in it, and no command to the log of a CI job."""
    return without_commands(visible(text).replace("\n", " ").replace("\t", " "))


def safe_lines(text: str) -> str:
    """`text` made safe as the lines that it has; for words of ours that stand on several lines."""
    return "\n".join(map(one_line, text.split("\n")))


def without_commands(text: str) -> str:
    """Finished lines, in which nothing is a command to the log of a CI job."""
    return _COMMAND.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    before, character = (part for part in match.groups() if part is not None)
    return f"{before}\\x{ord(character):02x}"
