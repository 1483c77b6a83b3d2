"""Measures interference with a process and its descendants.

A process that begins and ends between two readings is seen as well: others' time is the time in which CPUs were busy,
less ours. It is named after its parent, which got its time.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pytest_ldos.host.cpu import read_setting
from pytest_ldos.host.interference import MOST_PROGRAMS, Interference
from pytest_ldos.host.machine_counters import MachineCounters, read_machine_counters
from pytest_ldos.host.process_names import name_of_command
from pytest_ldos.host.process_times import TICK_S, Key, ProcessTimes, is_owned, read_process_times, tree_of

BRIEFLY_S: Final = 0.7
"""Long enough for a share of the CPUs in steps of 0.01, s."""

_INTERPRETER: Final = "python"
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True)
class _Reading:
    at_s: float
    machine: MachineCounters
    processes: ProcessTimes
    ours: set[Key]


class InterferenceMeter:
    """Measures interference from when it is made. Each reading takes some 30 µs for each process of the machine.

    Args:
        root: below which ``proc`` and ``sys`` are, for tests.
        pid: of the measuring process; by default this one.

    Attributes:
        own_pids: processes that were seen and are no others.
    """

    def __init__(self, root: Path = Path("/"), pid: int | None = None) -> None:
        self._root = root
        self._pid = os.getpid() if pid is None else pid
        self.own_pids: set[int] = set()
        self._began = self._read()

    def _read(self) -> _Reading:
        machine, processes = read_machine_counters(self._root), read_process_times(self._root)
        ours = tree_of(self._pid, processes, self._root)
        self.own_pids |= {pid for pid, _ in ours}
        return _Reading(time.monotonic(), machine, processes, ours)

    def measure(self) -> Interference:
        """Interference since this object was made, or since the last `lap`."""
        return self._between(self._began, self._read())

    def lap(self) -> Interference:
        """The same; measures from now on afterwards."""
        before, self._began = self._began, self._read()
        return self._between(before, self._began)

    def _between(self, before: _Reading, now: _Reading) -> Interference:
        seconds, then, machine = now.at_s - before.at_s, before.machine, now.machine
        strangers, orphans = self._others(before, now)
        steal_s, nobody_s = _growth(then.steal_s, machine.steal_s), _growth(then.nobody_s, machine.nobody_s)
        ours_s = _grown_s(before.processes, now.processes, before.ours | now.ours | orphans)
        busy_s = None if nobody_s is None else seconds * machine.cpus - nobody_s - (steal_s or 0.0)
        return Interference(
            seconds=seconds,
            cpus=machine.cpus,
            others_s=None if busy_s is None else max(busy_s - ours_s, 0.0),
            steal_s=steal_s,
            throttled_s=_growth(then.throttled_s, machine.throttled_s),
            thermal_throttles=_growth(then.thermal_throttles, machine.thermal_throttles),
            memory_stall_s=_growth(then.memory_stall_s, machine.memory_stall_s),
            programs=self._by_program(now.processes, strangers),
        )

    def _others(self, before: _Reading, now: _Reading) -> tuple[Mapping[Key, int], set[Key]]:
        """Ticks that each stranger used, and the orphans of ours, which have a parent outside our tree."""
        known = {key: each.ticks for key, each in before.processes.items()}
        for key, heir in _heirs(before.processes, now.processes):
            known[heir] += known[key]
        used = {key: each.ticks - known.get(key, 0) for key, each in now.processes.items() if key not in now.ours}
        used = {key: ticks for key, ticks in used.items() if ticks > 0}
        orphans = {key for key in used if is_owned(key[0], self._pid, self._root)}
        self.own_pids |= {pid for pid, _ in orphans}
        return {key: ticks for key, ticks in used.items() if key not in orphans}, orphans

    def _by_program(self, processes: ProcessTimes, used: Mapping[Key, int]) -> Mapping[str, float]:
        """CPU seconds of the programs that used most; a script has its own name."""
        programs: Counter[str] = Counter()
        for key, ticks in used.items():
            name = processes[key].name
            programs[(self._script(key[0]) or name) if name.startswith(_INTERPRETER) else name] += ticks
        return {name: ticks * TICK_S for name, ticks in programs.most_common(MOST_PROGRAMS)}

    def _script(self, pid: int) -> str:
        return name_of_command(read_setting(self._root / f"proc/{pid}/cmdline").rstrip("\0").split("\0"))


def measure_briefly(seconds: float = BRIEFLY_S) -> Interference:
    """Interference with this process from now on, for a moment."""
    meter = InterferenceMeter()
    time.sleep(seconds)
    return meter.measure()


def _heirs(before: ProcessTimes, now: ProcessTimes) -> Iterator[tuple[Key, Key]]:
    """Each process that ended, and its nearest ancestor that still runs, which got its time."""
    by_pid = {key[0]: key for key in before}
    for key in before.keys() - now.keys():
        parent = by_pid.get(before[key].parent)
        while parent is not None and parent not in now:
            parent = by_pid.get(before[parent].parent)
        if parent is not None:
            yield key, parent


def _grown_s(before: ProcessTimes, now: ProcessTimes, keys: Iterable[Key]) -> float:
    """CPU time that processes used between two readings, s; a parent has that of children which ended."""
    every = set(keys)
    return TICK_S * (_ticks(now, every) - _ticks(before, every))


def _ticks(processes: ProcessTimes, keys: Iterable[Key]) -> int:
    return sum(processes[key].ticks for key in keys if key in processes)


def _growth(before: _Number | None, now: _Number | None) -> _Number | None:
    """Growth of a counter, ``None`` where it is not reported; the kernel lets idle and steal go back a little."""
    return None if before is None or now is None else max(now - before, type(now)(0))
