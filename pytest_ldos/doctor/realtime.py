"""Check of the permission for the control loop's real-time priority.

Reference: ros2_control, "Controller Manager", Determinism: the loop asks for SCHED_FIFO 50; sched(7).
"""

from __future__ import annotations

import re
from typing import Final

from pytest_ldos.doctor.finding import Finding, ok, warning
from pytest_ldos.doctor.machine import Machine

PRIORITY: Final = 50
_CAP_SYS_NICE: Final = 23
_LIMIT: Final = re.compile(r"^Max realtime priority\s+(\w+)", re.MULTILINE)
_CAPABILITIES: Final = re.compile(r"^CapEff:\s*([0-9a-f]+)", re.MULTILINE)


def check_realtime(machine: Machine) -> Finding:
    title = "real-time priority"
    if _has_capability(machine):
        return ok(title, "permitted (CAP_SYS_NICE)")
    limit = _limit(machine)
    if limit >= PRIORITY:
        return ok(title, f"permitted (rtprio {limit})")
    text = f"not permitted (rtprio {limit}): the control loop runs among all others"
    if not machine.wants_ros2:
        return ok(title, f"rtprio {limit}; the embedded stack asks for none")
    remedy = "as in ros2_control's manual: group realtime with `rtprio 99` in /etc/security/limits.conf, log in again"
    return warning(title, text, f"{remedy} (a container: --cap-add=sys_nice --ulimit rtprio=99)")


def _has_capability(machine: Machine) -> bool:
    found = _CAPABILITIES.search(machine.read("proc/self/status"))
    return found is not None and bool(int(found.group(1), 16) >> _CAP_SYS_NICE & 1)


def _limit(machine: Machine) -> int:
    """Soft limit of this process, which its children inherit."""
    found = _LIMIT.search(machine.read("proc/self/limits"))
    if found is None:
        return 0
    return 99 if found.group(1) == "unlimited" else int(found.group(1))
