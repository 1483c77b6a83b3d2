"""What ``perf script`` prints, folded.

A sample is a line of its thread, process and event, then a line a frame, the innermost first, then an empty one::

    move_group 5321/5330  59866.039831: cpu-clock:
                 100960 _PyEval_EvalFrameDefault (/usr/lib/libpython3.11.so.1.0)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from pytest_ldos.profiles.folded import MOST_FRAMES, FoldedStacks, Stack, frame_name

FIELDS: Final = "comm,pid,tid,time,event,ip,sym,dso"
"""What is asked of ``perf script -F``."""

_HEADER: Final = re.compile(r"^(?P<comm>.*\S)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\d+\.\d+:\s+\S+:\s*$")
_FRAMES: Final = (
    re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<name>.*) \((?P<dso>[^()]+(?: \(deleted\))?)\)$"),
    re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<name>.*?) \((?P<dso>[/\[].*)\)$"),
)
"""The last bracket is the file; names of functions hold some, too, and so may paths."""

_UNKNOWN: Final = "[unknown]"


@dataclass(frozen=True)
class ReadSamples:
    """Samples, and what of the text was not understood.

    Attributes:
        damaged: lines that are neither a sample nor a frame, and samples without a frame.
    """

    profile: FoldedStacks
    damaged: int


def fold_perf_script(lines: Iterable[str], names: Mapping[int, str]) -> ReadSamples:
    """Samples of ``perf script -F`` `FIELDS`.

    Args:
        names: what processes are called, by pid; others are called as the kernel calls their first thread, or
            where that has no sample, any of their threads.
    """
    counts: Counter[tuple[int, Stack]] = Counter()
    threads: dict[int, str] = {}
    damaged = 0
    for sample in _samples(lines):
        header, stack = _HEADER.match(sample[0]), _stack(sample[1:])
        if header is None or stack is None:
            damaged += len(sample)
            continue
        pid = int(header["pid"])
        counts[pid, stack] += 1
        if pid not in threads or header["pid"] == header["tid"]:
            threads[pid] = header["comm"]
    named: Counter[Stack] = Counter()
    for (pid, stack), count in counts.items():
        named[frame_name(names.get(pid, threads[pid])), *stack] += count
    return ReadSamples(FoldedStacks(dict(named)), damaged)


def _samples(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines that belong together."""
    found: list[str] = []
    for line in lines:
        text = line.rstrip("\n")
        if text.strip():
            if not text.startswith("#"):
                found.append(text)
        elif found:
            yield found
            found = []
    if found:
        yield found


def _stack(lines: list[str]) -> Stack | None:
    """From the outermost frame to the innermost; ``None`` where a line is not as it should be, or there is none."""
    frames = [_match_frame(line) for line in lines]
    if not frames or None in frames:
        return None
    return tuple([_name(frame) for frame in reversed(frames) if frame is not None][: MOST_FRAMES - 1])


def _match_frame(line: str) -> re.Match[str] | None:
    return next((found for each in _FRAMES if (found := each.match(line)) is not None), None)


def _name(frame: re.Match[str]) -> str:
    """The function, or the file it is in."""
    if frame["name"] != _UNKNOWN:
        return frame_name(frame["name"])
    dso = frame["dso"]
    return _UNKNOWN if dso.startswith("[unknown") else frame_name(f"[{PurePosixPath(dso).name}]")
