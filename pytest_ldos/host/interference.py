"""Interference with a measurement by other programs and the machine.

Others' time is busy CPU time minus the measurement's, so that short processes are included, by their parents' names.

Reference: ``proc(5)`` (``/proc/stat``); the kernel's ``Documentation/accounting/psi.rst``, ``cgroup-v2.rst``
(``cpu.stat``) and ``Documentation/ABI/testing/sysfs-devices-system-cpu`` (``thermal_throttle``).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from pytest_ldos.base.text import one_line
from pytest_ldos.host.cgroup import find_home
from pytest_ldos.host.counters import TICK_S, Key, ProcessTimes, is_owned, read_process_times, tree_of
from pytest_ldos.host.cpu import SYSFS_CPU, read_setting
from pytest_ldos.host.processes import name_of_command

MOST_PROGRAMS: Final = 5  # number of programs recorded per span
NOTABLE_SHARE: Final = 0.1
"""Share of the machine's CPU time above which others are reported and trials count as disturbed."""

_NOTABLE_STALL: Final = 0.02  # share of a span above which throttling and memory stalls are reported
_SHORTEST_S: Final = 0.5  # shortest span that is reported: the kernel counts CPU time in hundredths of a second
_MOST_NAMED: Final = 3
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, kw_only=True)
class Interference:
    """Interference during a time span. A value that this machine does not report is ``None``.

    Attributes:
        seconds: length of the span.
        cpus: CPUs of the machine.
        others_s: CPU time of the kernel's threads and all processes except the measuring one and its descendants.
        steal_s: CPU time given to other virtual machines (steal).
        throttled_s: time for which this process's control group was throttled.
        thermal_throttles: number of thermal throttling events of cores.
        memory_stall_s: time in which some process waited for memory.
        programs: CPU time [s] of the busiest other programs.
    """

    seconds: float
    cpus: int
    others_s: float | None = None
    steal_s: float | None = None
    throttled_s: float | None = None
    thermal_throttles: int | None = None
    memory_stall_s: float | None = None
    programs: Mapping[str, float] = field(default_factory=dict)

    @property
    def others_share(self) -> float:
        """Share of the machine's CPU time used by others and the hypervisor; 0 if unknown."""
        all_s = self.seconds * self.cpus
        return ((self.others_s or 0.0) + (self.steal_s or 0.0)) / all_s if all_s > 0 else 0.0

    @property
    def is_heavy(self) -> bool:
        """True if others used so much that a trial is not comparable with the rest."""
        return self.seconds >= _SHORTEST_S and self.others_share >= NOTABLE_SHARE


def add_up(spans: Iterable[Interference]) -> Interference | None:
    """Total interference of several spans; ``None`` without spans."""
    every = list(spans)
    if not every:
        return None
    programs: Counter[str] = Counter()
    for each in every:
        programs.update(each.programs)
    return Interference(
        seconds=sum(each.seconds for each in every),
        cpus=max(each.cpus for each in every),
        others_s=_sum(each.others_s for each in every),
        steal_s=_sum(each.steal_s for each in every),
        throttled_s=_sum(each.throttled_s for each in every),
        thermal_throttles=_sum(each.thermal_throttles for each in every),
        memory_stall_s=_sum(each.memory_stall_s for each in every),
        programs=dict(programs.most_common(MOST_PROGRAMS)),
    )


def _sum(values: Iterable[_Number | None]) -> _Number | None:
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def describe_interference(found: Interference | None) -> str:
    """``others used 1.6 of 2 CPUs: cargo, cc1plus``; empty if negligible."""
    if found is None or found.cpus <= 0 or found.seconds < _SHORTEST_S:
        return ""
    seconds, cpus, parts = found.seconds, found.cpus, []
    if (found.others_s or 0.0) / (seconds * cpus) >= NOTABLE_SHARE:
        parts.append(describe_others(found))
    if (found.steal_s or 0.0) / (seconds * cpus) >= _NOTABLE_STALL:
        parts.append(f"the hypervisor took {(found.steal_s or 0.0) / seconds:.1f} of {cpus} CPUs")
    if (found.throttled_s or 0.0) / seconds >= _NOTABLE_STALL:
        parts.append(f"a quota of CPU time stopped our control group for {found.throttled_s:.1f} s of {seconds:.1f} s")
    if found.thermal_throttles:
        parts.append(f"cores slowed down for heat {found.thermal_throttles} times")
    if (found.memory_stall_s or 0.0) / seconds >= _NOTABLE_STALL:
        parts.append(f"programs waited for memory for {found.memory_stall_s:.1f} s of {seconds:.1f} s")
    return "; ".join(parts)


def describe_others(found: Interference) -> str:
    """``others used 0.1 of 2 CPUs: cargo``, also if negligible; empty if unknown."""
    if found.others_s is None or found.seconds <= 0:
        return ""
    named = [one_line(name) for name in islice(found.programs, _MOST_NAMED)]
    more = " …" if len(found.programs) > _MOST_NAMED else ""
    names = f": {', '.join(named)}{more}" if named else ""
    return f"others used {found.others_s / found.seconds:.1f} of {found.cpus} CPUs{names}"


_IDLE, _STEAL = 3, 7
"""Columns of ``/proc/stat``: time of no process (idle, iowait, irq, softirq), and steal."""

_THROTTLED: Final = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
"""Keys of a control group's throttled time in versions 2 and 1, with their units in seconds."""


@dataclass(frozen=True)
class MachineCounters:
    """Counters since the machine's start, as in `Interference`; `unowned_s` is idle and interrupt time of all CPUs."""

    cpus: int
    unowned_s: float | None
    steal_s: float | None
    throttled_s: float | None
    thermal_throttles: int | None
    memory_stall_s: float | None


def read_machine_counters(root: Path = Path("/")) -> MachineCounters:
    """Reads the counters; `root` is the folder of ``proc`` and ``sys``."""
    lines = [line.split() for line in read_setting(root / "proc/stat").splitlines() if line.startswith("cpu")]
    columns = _numbers(next((line[1:] for line in lines if line[0] == "cpu"), []))
    files = (root / SYSFS_CPU).glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    throttles = _numbers([read_setting(file) for file in files])
    stall = read_setting(root / "proc/pressure/memory").partition("\n")[0].split()
    stalled_us = _numbers([word.removeprefix("total=") for word in stall if word.startswith("total=")])
    return MachineCounters(
        cpus=sum(line[0] != "cpu" for line in lines),
        unowned_s=sum(columns[_IDLE:_STEAL]) * TICK_S if len(columns) >= _STEAL else None,
        steal_s=columns[_STEAL] * TICK_S if len(columns) > _STEAL else None,
        throttled_s=_read_throttled_s(root),
        thermal_throttles=sum(throttles) if throttles else None,
        memory_stall_s=stalled_us[0] * 1e-6 if stalled_us else None,
    )


def _read_throttled_s(root: Path) -> float | None:
    """The longest time of all ancestor groups, each of which can throttle this process."""
    folder = find_home("self", root)
    found: list[float] = []
    while folder is not None and (folder / "cpu.stat").is_file():
        pairs = (line.split() for line in read_setting(folder / "cpu.stat").splitlines())
        found += [int(pair[1]) * _THROTTLED[pair[0]] for pair in pairs if pair[0] in _THROTTLED]
        folder = folder.parent
    return max(found, default=None)


def _numbers(words: list[str]) -> list[int]:
    return [int(word) for word in words if word.isascii() and word.isdecimal()]


_BRIEFLY_S: Final = 0.7  # resolves a share of the CPUs to 0.01


@dataclass(frozen=True)
class _Reading:
    at_s: float
    machine: MachineCounters
    processes: ProcessTimes
    ours: set[Key]


class InterferenceMeter:
    """Measures interference with a process since its creation. A reading takes about 30 µs per running process."""

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
        """Interference since creation, or since the last `lap`."""
        return self._between(self._began, self._read())

    def lap(self) -> Interference:
        """Returns `measure()` and begins a new span."""
        before, self._began = self._began, self._read()
        return self._between(before, self._began)

    def _between(self, before: _Reading, now: _Reading) -> Interference:
        seconds, then, machine = now.at_s - before.at_s, before.machine, now.machine
        others, orphans = self._others(before, now)
        steal_s, unowned_s = _growth(then.steal_s, machine.steal_s), _growth(then.unowned_s, machine.unowned_s)
        ours = before.ours | now.ours | orphans  # a parent inherits the time of ended children
        then_ticks, now_ticks = (
            sum(each.processes[key].ticks for key in ours & each.processes.keys()) for each in (before, now)
        )
        busy_s = None if unowned_s is None else seconds * machine.cpus - unowned_s - (steal_s or 0.0)
        return Interference(
            seconds=seconds,
            cpus=machine.cpus,
            others_s=None if busy_s is None else max(busy_s - TICK_S * (now_ticks - then_ticks), 0.0),
            steal_s=steal_s,
            throttled_s=_growth(then.throttled_s, machine.throttled_s),
            thermal_throttles=_growth(then.thermal_throttles, machine.thermal_throttles),
            memory_stall_s=_growth(then.memory_stall_s, machine.memory_stall_s),
            programs=self._by_program(now.processes, others),
        )

    def _others(self, before: _Reading, now: _Reading) -> tuple[Mapping[Key, int], set[Key]]:
        """Ticks used by each other process, and orphans of the measurement, whose parents are outside its tree."""
        known = {key: each.ticks for key, each in before.processes.items()}
        for key, heir in _heirs(before.processes, now.processes):
            known[heir] += known[key]
        used = {key: each.ticks - known.get(key, 0) for key, each in now.processes.items() if key not in now.ours}
        used = {key: ticks for key, ticks in used.items() if ticks > 0}
        orphans = {key for key in used if is_owned(key[0], self._pid, self._root)}
        self.own_pids |= {pid for pid, _ in orphans}
        return {key: ticks for key, ticks in used.items() if key not in orphans}, orphans

    def _by_program(self, processes: ProcessTimes, used: Mapping[Key, int]) -> Mapping[str, float]:
        """CPU seconds of the busiest programs; a script has its own name."""
        programs: Counter[str] = Counter()
        for key, ticks in used.items():
            name = processes[key].name
            if name.startswith("python"):
                command = read_setting(self._root / f"proc/{key[0]}/cmdline").rstrip("\0").split("\0")
                name = name_of_command(command) or name
            programs[name] += ticks
        return {name: ticks * TICK_S for name, ticks in programs.most_common(MOST_PROGRAMS)}


def measure_briefly() -> Interference:
    meter = InterferenceMeter()
    time.sleep(_BRIEFLY_S)
    return meter.measure()


def _heirs(before: ProcessTimes, now: ProcessTimes) -> Iterator[tuple[Key, Key]]:
    """The nearest running ancestor of each ended process, which inherits its time."""
    by_pid = {key[0]: key for key in before}
    for key in before.keys() - now.keys():
        parent = by_pid.get(before[key].parent)
        while parent is not None and parent not in now:
            parent = by_pid.get(before[parent].parent)
        if parent is not None:
            yield key, parent


def _growth(before: _Number | None, now: _Number | None) -> _Number | None:
    """Growth of a counter, ``None`` if not reported; idle and steal may decrease slightly."""
    return None if before is None or now is None else max(now - before, type(now)(0))
