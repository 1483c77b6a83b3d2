"""Counters of the machine that tell what held up its programs; absent where it does not report them.

Reference: ``proc(5)`` (``/proc/stat``); the kernel's ``Documentation/accounting/psi.rst``,
``Documentation/admin-guide/cgroup-v2.rst`` (``cpu.stat``) and
``Documentation/ABI/testing/sysfs-devices-system-cpu`` (``thermal_throttle``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.host.cgroup import find_home
from pytest_ldos.host.cpu import SYSFS_CPU, read_setting
from pytest_ldos.host.process_times import TICK_S

_IDLE, _STEAL = 3, 7
"""Columns of ``/proc/stat``: idle, iowait, irq and softirq, which are nobody's, and steal."""

_THROTTLED: Final = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
"""Names of control groups' throttled time, in versions 2 and 1, with their units in seconds."""


@dataclass(frozen=True)
class MachineCounters:
    """Counters since the machine's start.

    Attributes:
        cpus: number of CPUs.
        nobody_s: time in which CPUs were idle or served interrupts, of all CPUs together.
        steal_s: CPU time that the hypervisor gave to others.
        throttled_s: time for which its quota stopped this process's control group, or one around it.
        thermal_throttles: number of times that a core slowed down for heat.
        memory_stall_s: time in which some process waited for memory.
    """

    cpus: int
    nobody_s: float | None
    steal_s: float | None
    throttled_s: float | None
    thermal_throttles: int | None
    memory_stall_s: float | None


def read_machine_counters(root: Path = Path("/")) -> MachineCounters:
    """The counters now; `root` is the folder above ``proc`` and ``sys``."""
    cpus, columns = _read_cpu_times(root)
    return MachineCounters(
        cpus=cpus,
        nobody_s=sum(columns[_IDLE:_STEAL]) * TICK_S if len(columns) >= _STEAL else None,
        steal_s=columns[_STEAL] * TICK_S if len(columns) > _STEAL else None,
        throttled_s=_read_throttled_s(root),
        thermal_throttles=_read_thermal_throttles(root),
        memory_stall_s=_read_memory_stall_s(root),
    )


def _read_cpu_times(root: Path) -> tuple[int, list[int]]:
    """Number of CPUs, and the columns of all of them together."""
    lines = [line.split() for line in read_setting(root / "proc/stat").splitlines() if line.startswith("cpu")]
    together = next((line[1:] for line in lines if line[0] == "cpu"), [])
    return sum(line[0] != "cpu" for line in lines), _numbers(together)


def _read_throttled_s(root: Path) -> float | None:
    """The longest of all groups that this process is in: each stops it."""
    folder = find_home("self", root)
    found: list[float] = []
    while folder is not None and (folder / "cpu.stat").is_file():
        pairs = (line.split() for line in read_setting(folder / "cpu.stat").splitlines())
        found += [int(pair[1]) * _THROTTLED[pair[0]] for pair in pairs if pair[0] in _THROTTLED]
        folder = folder.parent
    return max(found, default=None)


def _read_thermal_throttles(root: Path) -> int | None:
    files = (root / SYSFS_CPU).glob("cpu[0-9]*/thermal_throttle/core_throttle_count")
    counts = _numbers([read_setting(file) for file in files])
    return sum(counts) if counts else None


def _read_memory_stall_s(root: Path) -> float | None:
    first = read_setting(root / "proc/pressure/memory").partition("\n")[0]
    total = _numbers([word.removeprefix("total=") for word in first.split() if word.startswith("total=")])
    return total[0] * 1e-6 if total else None


def _numbers(words: list[str]) -> list[int]:
    return [int(word) for word in words if word.isascii() and word.isdecimal()]
