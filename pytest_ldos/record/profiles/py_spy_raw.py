"""Folds the output of py-spy with ``--format raw``.

Lines are folded stacks already. With ``--subprocesses`` they begin with a frame of the process, which contains its
command line verbatim, including any separators of frames::

    process 25036:"/usr/bin/python3 node.py";main (node.py:8);inner (node.py:4) 49
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from pytest_ldos.record.profiles.folded import MOST_FRAMES, FoldedStacks, Stack, frame_name
from pytest_ldos.record.profiles.perf_script import ReadSamples

_PROCESS: Final = re.compile(r'^(?:.*;)?process (?P<pid>\d+):"(?P<command>.*?)";(?P<stack>.*)$')
"""Greedy: a process follows the processes that started it."""

_LINE: Final = re.compile(r"^(?P<stack>.*\S) (?P<count>\d{1,15})$")


def fold_py_spy(text: str, names: Mapping[int, str], process: str) -> ReadSamples:
    """Folds samples that py-spy wrote.

    Args:
        names: process names by pid.
        process: name of the process for lines that name none.
    """
    counts: Counter[Stack] = Counter()
    damaged = 0
    for line in filter(str.strip, text.split("\n")):
        found = _LINE.match(line)
        if found is None or not int(found["count"]):
            damaged += 1
        else:
            counts[_stack(found["stack"], names, process)] += int(found["count"])
    return ReadSamples(FoldedStacks(dict(counts)), damaged)


def _stack(text: str, names: Mapping[int, str], process: str) -> Stack:
    found = _PROCESS.match(text)
    frames = found["stack"] if found else text
    name = process if found is None else names.get(int(found["pid"])) or _program(found["command"])
    return frame_name(name), *(frame_name(each) for each in frames.split(";")[: MOST_FRAMES - 1])


def _program(command: str) -> str:
    words = command.split()
    return PurePosixPath(words[0]).name if words else "process"
