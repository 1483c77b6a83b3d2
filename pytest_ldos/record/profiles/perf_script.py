"""Folds the output of ``perf script``.

A sample is a line with its thread, process and event, then one line per frame, the innermost first, then an empty
line::

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

from pytest_ldos.record.profiles.folded import MOST_FRAMES, FoldedStacks, Stack, frame_name

FIELDS: Final = "comm,pid,tid,time,event,ip,sym,dso"
"""Argument of ``perf script -F``."""

_HEADER: Final = re.compile(r"^(?P<comm>.*\S)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\d+\.\d+:\s+\S+:\s*$")
_FRAMES: Final = (
    re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<name>.*) \((?P<dso>[^()]+(?: \(deleted\))?)\)$"),
    re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<name>.*?) \((?P<dso>[/\[].*)\)$"),
)
"""The last bracket is the file; names of functions may contain brackets, too, and so may paths."""

_UNKNOWN: Final = "[unknown]"


@dataclass(frozen=True)
class ReadSamples:
    """Samples, and the amount of text that was not understood.

    Attributes:
        damaged: number of lines that are neither a sample nor a frame, and of samples without a frame.
    """

    profile: FoldedStacks
    damaged: int


def fold_perf_script(lines: Iterable[str], names: Mapping[int, str]) -> ReadSamples:
    """Samples of ``perf script -F`` `FIELDS`.

    Args:
        names: process names by pid; other processes take the kernel's name of their first thread or,
            if that has no sample, of any of their threads.
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
    """Groups of lines that belong to one sample."""
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
    """Frames from the outermost to the innermost; ``None`` if a line is malformed, or there is no frame."""
    frames = [_match_frame(line) for line in lines]
    if not frames or None in frames:
        return None
    return tuple([_name(frame) for frame in reversed(frames) if frame is not None][: MOST_FRAMES - 1])


def _match_frame(line: str) -> re.Match[str] | None:
    return next((found for each in _FRAMES if (found := each.match(line)) is not None), None)


def _name(frame: re.Match[str]) -> str:
    """Name of the function, or of its file."""
    if frame["name"] != _UNKNOWN:
        return frame_name(frame["name"])
    dso = frame["dso"]
    return _UNKNOWN if dso.startswith("[unknown") else frame_name(f"[{PurePosixPath(dso).name}]")
