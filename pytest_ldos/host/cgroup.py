"""A control group (version 2 or 1) that limits CPU time, and the memory available to a program.

Reference: the kernel's ``Documentation/admin-guide/cgroup-v2.rst`` (CPU, delegation, "no internal
processes") and ``Documentation/scheduler/sched-bwc.rst``.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.host.availability import Availability
from pytest_ldos.host.cpu import read_setting
from pytest_ldos.host.temporary import RemoveCgroup, Undo, WriteSetting

PERIOD_US: Final = 100_000  # the kernel's default period; each one begins with the full quota
NAME: Final = "pytest-ldos-"


@dataclass(frozen=True)
class CgroupPlace:
    """A group in which a child with a quota can be created, if need be after enabling the CPU controller."""

    folder: Path
    version: int
    switch_on: bool = False


@dataclass(frozen=True)
class Throttling:
    """The kernel's counters of a quota: periods in which the group could run, and was throttled; s over all CPUs."""

    periods: int
    throttled: int
    throttled_s: float

    def since(self, earlier: Throttling) -> Throttling:
        return Throttling(
            self.periods - earlier.periods, self.throttled - earlier.throttled, self.throttled_s - earlier.throttled_s
        )


def find_place(root: Path = Path("/")) -> CgroupPlace | Availability:
    """The nearest ancestor group in which a child with a quota can be created, or the reason why there is none."""
    home = find_home("self", root)
    mount = _find_mount(root)
    if home is None or mount is None:
        return Availability(False, "control groups are not mounted here", "mount them, or use cpus instead")
    if mount.version == 2:
        return _place_in_v2(home, mount.folder)
    if not (home / "cpu.cfs_quota_us").is_file():
        return Availability(False, "this kernel has no quotas of CPU time (CONFIG_CFS_BANDWIDTH)", "use cpus instead")
    if _is_writable(home):
        return CgroupPlace(home, 1)
    return Availability(False, f"no control group may be made in {home}", "run it as root, or use cpus instead")


def find_home(pid: int | str, root: Path = Path("/")) -> Path | None:
    """Folder of a process's group in the hierarchy that has the CPU controller."""
    mount = _find_mount(root)
    for line in read_setting(root / f"proc/{pid}/cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if mount is not None and (number == "0" if mount.version == 2 else "cpu" in controllers.split(",")):
            inside = Path(path).is_relative_to(mount.shown)
            return mount.folder / Path(path).relative_to(mount.shown) if inside else mount.folder
    return None


@dataclass(frozen=True)
class _Mount:
    """A mounted hierarchy; `shown` is the group at its mount point."""

    folder: Path
    shown: str
    version: int


def _find_mount(root: Path) -> _Mount | None:
    """Finds version 1's hierarchy with the CPU controller, or else version 2's."""
    found = None
    for line in read_setting(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        shown, point = before.split()[3:5]
        kind, _, options = after.split(None, 2)
        folder = root / point.lstrip("/")
        if kind == "cgroup" and "cpu" in options.split(","):
            return _Mount(folder, shown, 1)
        if kind == "cgroup2" and found is None:
            found = _Mount(folder, shown, 2)
    return found


def _place_in_v2(home: Path, mount: Path) -> CgroupPlace | Availability:
    """The nearest group with a writable list of processes, which allows moving processes below it."""
    folder = home
    while folder.is_relative_to(mount):
        if _is_writable(folder) and "cpu" in _words(folder / "cgroup.controllers"):
            if "cpu" in _words(folder / "cgroup.subtree_control"):
                return CgroupPlace(folder, 2)
            # Except for the machine's root, the only one without a type, only a group without processes can have
            # children with controllers.
            if not (folder / "cgroup.type").exists() or not _words(folder / "cgroup.procs"):
                return CgroupPlace(folder, 2, switch_on=True)
        folder = folder.parent
    if "cpu" not in _words(mount / "cgroup.controllers"):
        return Availability(False, f"the CPU controller is not available below {mount}", "use cpus instead")
    remedy = "start pytest in one that is yours: systemd-run --user --scope -p Delegate=yes pytest …, or as root"
    return Availability(False, f"no control group with the CPU controller may be made above {home}", remedy)


def _is_writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)


class QuotaGroup:
    """A new control group with a quota, percent of a CPU for all its processes; raises `OSError` if the kernel refuses.

    `undo` removes the group in any case; its processes move to the parent group.
    """

    def __init__(self, place: CgroupPlace, percent: float, undo: Undo, root: Path = Path("/")) -> None:
        self._version = place.version
        self._root = root
        self._homes: dict[int, Path] = {}
        self.folder = place.folder / f"{NAME}{os.getpid()}-{secrets.token_hex(4)}"
        if place.switch_on:
            control = place.folder / "cgroup.subtree_control"
            undo.register(WriteSetting(str(control), "-cpu"))
            control.write_text("+cpu", "ascii")
        refuge = find_home("self", self._root) or place.folder
        undo.register(RemoveCgroup(str(self.folder), refuge=str(refuge)))
        self.folder.mkdir()
        quota_us = round(PERIOD_US * percent / 100)
        if self._version == 2:
            (self.folder / "cpu.max").write_text(f"{quota_us} {PERIOD_US}", "ascii")
        else:
            (self.folder / "cpu.cfs_period_us").write_text(str(PERIOD_US), "ascii")
            (self.folder / "cpu.cfs_quota_us").write_text(str(quota_us), "ascii")

    def read_percent(self) -> float:
        """The quota in force, percent of a CPU; infinite without one."""
        if self._version == 2:
            quota, period = _words(self.folder / "cpu.max") or ["max", str(PERIOD_US)]
        else:
            quota, period = (read_setting(self.folder / f"cpu.cfs_{each}_us") for each in ("quota", "period"))
        return float("inf") if quota in ("max", "-1", "") else 100.0 * int(quota) / int(period)

    def take_in(self, pids: Iterable[int]) -> None:
        """Moves processes into the group, where their later children start; raises `OSError` if that is refused."""
        inside = set(self.members())
        for pid in pids:
            if pid not in inside:
                home = find_home(pid, self._root)
                with contextlib.suppress(ProcessLookupError):
                    (self.folder / "cgroup.procs").write_text(str(pid), "ascii")
                    if home is not None:
                        self._homes[pid] = home

    def send_home(self) -> None:
        """Moves processes back to their former groups; `Undo` moves children and processes without a group."""
        for pid in self.members():
            if pid in self._homes:
                with contextlib.suppress(OSError):
                    (self._homes[pid] / "cgroup.procs").write_text(str(pid), "ascii")

    def members(self) -> list[int]:
        return [int(word) for word in _words(self.folder / "cgroup.procs")]

    def read_throttling(self) -> Throttling:
        pairs = (line.split() for line in read_setting(self.folder / "cpu.stat").splitlines())
        values = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
        seconds = values.get("throttled_usec", 0) / 1e6 + values.get("throttled_time", 0) / 1e9
        return Throttling(values.get("nr_periods", 0), values.get("nr_throttled", 0), seconds)


def _words(file: Path) -> list[str]:
    return read_setting(file).split()


_OURS: Final = Path("/proc/self/cgroup")
_GROUPS: Final = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """Available memory of this machine, within the limits of this process's control groups."""
    free = [psutil.virtual_memory().available]
    names = [line.removeprefix("0::/") for line in read_setting(_OURS).splitlines() if line.startswith("0::/")]
    for name in names[:1]:
        own = _GROUPS / name
        for folder in [own, *own.parents][: len(Path(name).parts) + 1]:
            with contextlib.suppress(OSError, ValueError):  # an unlimited group has "max"
                limit, used = (int((folder / each).read_text("ascii")) for each in ("memory.max", "memory.current"))
                cached = dict(line.split() for line in (folder / "memory.stat").read_text("ascii").splitlines())
                free.append(max(limit - used + int(cached.get("inactive_file", 0)), 0))
    return min(free)
