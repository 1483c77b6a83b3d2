"""Excerpts of other programs' output for messages: ends of logs, lines that were not understood."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_LAST_LINES: Final = 15
_QUOTED: Final = 200
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


def last_lines(log: Path) -> str:
    """The last lines of a log; empty where it cannot be read."""
    try:
        lines = log.read_text("utf-8", errors="replace").splitlines()[-_LAST_LINES:]
    except OSError:
        return ""
    return "\n".join(_COLOUR.sub("", line) for line in lines)


def quoted(line: str) -> str:
    """The beginning of a line in quotes, for a message."""
    return repr(line.strip()[:_QUOTED])


def last_words(logs: Iterable[Path]) -> str:
    """The ends of all logs that are not empty, each below its name."""
    ends = ((log.stem, last_lines(log)) for log in logs)
    return "\n".join(f"--- {name} ---\n{lines}" for name, lines in ends if lines)
