"""The scheduler's group of a process: groups share CPU time first, then the processes within a group.

Where ``sched_autogroup`` is on, each session is a group. It says so only for processes in the root
of the CPU controller: a control group takes its place.

Reference: ``sched(7)``, "The autogroup feature"; ``cgroups(7)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.host.cpu import read_setting

SWITCH: Final = "proc/sys/kernel/sched_autogroup_enabled"
_V2_MOUNTS: Final = ("sys/fs/cgroup", "sys/fs/cgroup/unified")
_V2_FILE: Final = "cpu.weight"


@dataclass(frozen=True)
class SchedulingGroup:
    """The group that a process competes in.

    Attributes:
        autogroup: the kernel's name of its session's group, e.g. ``/autogroup-913``; empty where not known.
        cgroup: path of its control group where that has a share of the CPUs of its own; empty in the root.
        by_session: whether the kernel groups by session at all.
    """

    autogroup: str
    cgroup: str
    by_session: bool

    @property
    def effective(self) -> str:
        """The group that CPU time is given to."""
        return self.cgroup or (self.autogroup if self.by_session else "/")

    def describe(self) -> str:
        if self.cgroup:
            return f"control group {self.cgroup}"
        return self.autogroup or "the root group"


def is_grouped_by_session(root: Path = Path("/")) -> bool:
    return read_setting(root / SWITCH) == "1"


def read_scheduling_group(pid: int, root: Path = Path("/")) -> SchedulingGroup | None:
    """Reads the group of a running process; ``None`` if it has ended.

    Args:
        root: below which ``proc`` and ``sys`` are, for tests.
    """
    if not (root / f"proc/{pid}").exists():
        return None
    words = read_setting(root / f"proc/{pid}/autogroup").split()
    return SchedulingGroup(words[0] if words else "", _cpu_cgroup(pid, root), is_grouped_by_session(root))


def _cpu_cgroup(pid: int, root: Path) -> str:
    lines = [line.split(":", 2) for line in read_setting(root / f"proc/{pid}/cgroup").splitlines()]
    for number, controllers, path in lines:
        if "cpu" in controllers.split(","):
            return "" if path == "/" else path
        if number == "0":
            found = _nearest_with_share(path, root)
            if found:
                return found
    return ""


def _nearest_with_share(path: str, root: Path) -> str:
    """The nearest group, upwards from `path`, with a share of its own: in version 2, one with the CPU controller."""
    mounts = [root / each for each in _V2_MOUNTS if (root / each / "cgroup.controllers").is_file()]
    while path.strip("/"):
        if any((mount / path.lstrip("/") / _V2_FILE).is_file() for mount in mounts):
            return path
        path = path.rpartition("/")[0]
    return ""
