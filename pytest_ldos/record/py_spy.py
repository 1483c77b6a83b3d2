"""Samples Python stacks with py-spy.

Lines are folded stacks. With ``--subprocesses`` they begin with a frame of the process, which contains its command
line verbatim, including any separators of frames::

    process 25036:"/usr/bin/python3 node.py";main (node.py:8);inner (node.py:4) 49

Python 3.12. Each process has its own py-spy; processes without Python are not sampled.

Reference: https://github.com/benfred/py-spy
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

import psutil

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.host.availability import Availability, program_version
from pytest_ldos.host.counters import tracing_permitted
from pytest_ldos.host.processes import Child
from pytest_ldos.record.perf import ReadSamples
from pytest_ldos.record.profiles import MOST_FRAMES, FoldedStacks, Stack, frame_name, merge
from pytest_ldos.record.protocol import AttachedTool, Sampled, clean_lines

_PROCESS: Final = re.compile(r'^(?:.*;)?process (?P<pid>\d+):"(?P<command>.*?)";(?P<stack>.*)$')
"""Greedy: a process follows its ancestors."""

_LINE: Final = re.compile(r"^(?P<stack>.*\S) (?P<count>\d{1,15})$")


def fold_py_spy(text: str, names: Mapping[int, str], process: str) -> ReadSamples:
    """Folds py-spy's samples; `process` names those of lines without a process, `names` other processes by pid."""
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
    name = process
    if found is not None:
        words = found["command"].split() or ["process"]
        name = names.get(int(found["pid"])) or PurePosixPath(words[0]).name
    return frame_name(name), *(frame_name(each) for each in frames.split(";")[: MOST_FRAMES - 1])


_READY_S: Final = 20.0
_END_S: Final = 20.0
_POLL_S: Final = 0.01
_BEGUN: Final = "Sampling process"


def py_spy_available() -> Availability:
    """Checks that py-spy is installed and may attach to other processes."""
    if _find_py_spy() is None:
        return Availability(False, "py-spy not found", "pip install 'pytest-ldos[profile]'")
    return tracing_permitted("py-spy")


def _find_py_spy() -> str | None:
    own = Path(sys.executable).with_name("py-spy")
    return str(own) if own.is_file() else shutil.which("py-spy")


@dataclass(frozen=True)
class _Spy:
    process: str
    child: Child
    raw: Path


class PySpyProfiler(AttachedTool):
    """See `Profiler`; processes are not stopped, so a stack that changes while it is read is dropped."""

    def __init__(self, log_directory: Path, *, rate_hz: int) -> None:
        super().__init__(log_directory)
        program = _find_py_spy()
        assert program is not None
        self._program = program
        self._rate_hz = rate_hz
        self._spies: list[_Spy] = []
        self._names: Mapping[int, str] = {}
        self._notes: list[str] = []
        self.name = f"{program_version('py-spy', program)} at {rate_hz} Hz"

    def start(self, processes: Mapping[int, str]) -> None:
        self._names = dict(processes)
        with self._starting("ldos-py-spy-") as folder:
            spies = []
            for pid in _without_descendants(processes):
                raw = folder / f"{pid}.folded"
                command = [self._program, "record", "--nonblocking", "--subprocesses", "--format", "raw"]
                command += ["--rate", str(self._rate_hz), "--output", str(raw), "--pid", str(pid)]
                spies.append(_Spy(processes[pid], self._group.start(f"py-spy-{pid}", command, fresh_log=True), raw))
            deadline = time.monotonic() + _READY_S
            self._spies = [spy for spy in spies if self._has_begun(spy, deadline)]
            if not self._spies:
                raise ProfilingFailed(f"py-spy samples no process: {'; '.join(self._notes) or 'there is none'}")

    def _has_begun(self, spy: _Spy, deadline: float) -> bool:
        while time.monotonic() < deadline and spy.child.exit_code is None:
            if _BEGUN in spy.child.last_lines():
                return True
            time.sleep(_POLL_S)
        self._notes.append(f"{spy.process} was not sampled: {_reason(spy.child)}")
        return False

    def stop(self) -> Sampled:
        try:
            for spy in self._spies:
                if spy.child.exit_code is None:
                    spy.child.process.send_signal(signal.SIGINT)
            read = [found for spy in self._spies if (found := self._read(spy)) is not None]
        finally:
            self.cancel()
        if not read:
            raise ProfilingFailed(f"py-spy gave no samples: {'; '.join(self._notes) or 'nothing ran'}")
        damaged = sum(each.damaged for each in read)
        if damaged:
            self._notes.append(f"{damaged} lines of py-spy were not understood and are left out")
        return Sampled(merge(each.profile for each in read), tuple(self._notes))

    def _read(self, spy: _Spy) -> ReadSamples | None:
        """Reads its samples; adds a note and returns ``None`` if there are none."""
        try:
            code = spy.child.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._notes.append(f"py-spy of {spy.process} did not end after SIGINT")
            return None
        if code != 0 or not spy.raw.is_file():
            self._notes.append(f"{spy.process} was not sampled to the end: {_reason(spy.child)}")
            return None
        return fold_py_spy(spy.raw.read_text("utf-8", errors="replace"), self._names, spy.process)


def _without_descendants(pids: Iterable[int]) -> list[int]:
    """Removes processes with a listed ancestor, whose samples include theirs."""
    wanted, roots = list(pids), []
    for pid in wanted:
        ancestors: set[int] = set()
        with suppress(psutil.Error):
            ancestors = {each.pid for each in psutil.Process(pid).parents()}
        if not ancestors & set(wanted):
            roots.append(pid)
    return roots


def _reason(spy: Child) -> str:
    lines = clean_lines(spy.last_lines())
    message = next((line for line in lines if line.startswith(("Error:", "Reason:", "Permission"))), "")
    how = "it did not begin in time" if spy.exit_code is None else spy.describe_end()
    return f"{how}, {message}" if message else how
