"""babeltrace2 as a second opinion on a trace."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_SYSTEM_PYTHON = "/usr/bin/python3"
_DUMP = Path(__file__).with_name("bt2_dump.py")


@cache
def why_unavailable() -> str:
    """Why the oracle cannot be asked; empty where it can."""
    try:
        done = subprocess.run([_SYSTEM_PYTHON, "-c", "import bt2"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return f"{_SYSTEM_PYTHON} does not exist"
    return "" if done.returncode == 0 else "package python3-bt2 is not installed (apt-get install python3-bt2)"


@dataclass(frozen=True)
class Opinion:
    """All events in babeltrace2's order, and how many it counts as discarded."""

    events: list[dict[str, Any]]
    discarded: int


def read_with_babeltrace(trace: Path) -> Opinion | None:
    """What babeltrace2 reads, or ``None`` where it refuses the trace or aborts."""
    done = subprocess.run([_SYSTEM_PYTHON, str(_DUMP), str(trace)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    *events, last = _lines(done.stdout)
    return Opinion(events, last["discarded"])


def _lines(text: str) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in text.splitlines())
