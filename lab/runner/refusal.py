"""Reason why a job may not run here, as one line that can do nothing to the log it is written to."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 200
_LONGEST_LINE: Final = 1000
_PLAIN: Final = frozenset(map(chr, range(0x20, 0x7F))) - set("%#:[]\\'")
"""ASCII but what has a meaning to the runner, or to a reader of what is quoted."""


class Refused(Exception):
    """The job may not run; its text is the reason."""


def quoted(value: object) -> str:
    """Somebody else's words between quotes: what is not plain in them is written as its number.

    No line end, no ``::`` and no ``##[`` is left, which the runner would take for commands.
    """
    text = value if isinstance(value, str) else f"<{type(value).__name__}>"
    shown = "".join(_plain(character) for character in text[:_LONGEST])
    return f"'{shown}...'" if len(text) > _LONGEST else f"'{shown}'"


def _plain(character: str) -> str:
    return character if character in _PLAIN else f"\\x{ord(character):02x}"


def annotation(reason: str) -> str:
    """The reason as a command of a workflow: the page of the run shows it as an error."""
    line = " ".join(reason.split())[:_LONGEST_LINE].replace("%", "%25")
    return f"::error title=Refused by the lab machine::{line}"
