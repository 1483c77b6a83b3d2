"""babeltrace2 as a second opinion on a trace."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

_SYSTEM_PYTHON = "/usr/bin/python3"
_DUMP = Path(__file__).with_name("bt2_dump.py")
_WRITE = Path(__file__).with_name("bt2_write.py")
_FILTER = Path(__file__).with_name("bt2_filter.py")


@cache
def why_unavailable() -> str:
    """The reason why the oracle is unavailable; empty if it is available."""
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


@dataclass
class Dictation:
    """The events of a trace as babeltrace2 gives them, one after the other; how it ended is known behind the last.

    Attributes:
        discarded: events that it counts as lost.
        refusal: why it refused the trace or gave it up, the root of the trouble first; empty where it read it.
    """

    child: subprocess.Popen[str]
    discarded: int = 0
    refusal: list[str] = field(default_factory=list)
    is_whole: bool = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            if self.refusal:
                return
            found = json.loads(line)
            if "name" in found:
                yield found
            else:
                self.is_whole = True
                self.discarded, self.refusal = found.get("discarded", 0), found.get("refused", [])

    def stop(self, reason: str) -> None:
        """Ends it as refused."""
        self.refusal = [reason]
        self.child.kill()


@contextmanager
def listening_to_babeltrace(trace: Path, *, by_stream: bool = False) -> Iterator[Dictation]:
    """Asks babeltrace2 for the events of a trace, without keeping them.

    Args:
        by_stream: one stream after the other; otherwise in time order.
    """
    command = [_SYSTEM_PYTHON, str(_DUMP), str(trace), *(["by-stream"] if by_stream else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        dictation = Dictation(child)
        yield dictation
    if not dictation.is_whole and not dictation.refusal:
        end = signal.Signals(-child.returncode).name if child.returncode < 0 else f"status {child.returncode}"
        dictation.refusal = [f"it ended with {end}"]


def read_with_babeltrace(trace: Path) -> Opinion | None:
    """Events read by babeltrace2, or ``None`` if it refuses the trace or aborts."""
    with listening_to_babeltrace(trace) as dictation:
        events = list(dictation)
    return None if dictation.refusal else Opinion(events, dictation.discarded)


def write_with_babeltrace(directory: Path, **wanted: Any) -> Path:
    """A trace that babeltrace2's own writer made (see ``bt2_write.py``)."""
    command = [_SYSTEM_PYTHON, str(_WRITE), json.dumps({"output": str(directory), **wanted})]
    subprocess.run(command, check=True, capture_output=True)
    return directory


def copy_with_babeltrace(trace: Path, directory: Path, *, without: Iterable[str]) -> Path:
    """A copy of a trace without events of some names, by babeltrace2 (see ``bt2_filter.py``)."""
    (metadata,) = trace.rglob("metadata")
    asked = {"input": str(metadata.parent), "output": str(directory), "events": list(without)}
    subprocess.run([_SYSTEM_PYTHON, str(_FILTER), json.dumps(asked)], check=True, capture_output=True)
    return directory
