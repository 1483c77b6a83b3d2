"""Checks that context switches of all programs can be recorded: without them, nobody knows who took a CPU.

Reference: the kernel's ``Documentation/admin-guide/sysctl/kernel.rst`` (``perf_event_paranoid``) and
``perf-security.rst``.
"""

from __future__ import annotations

import shutil
from typing import Final

from pytest_ldos.doctor.finding import Finding, ok, warning
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.doctor.settings import SetValues

_NAME: Final = "context switches"
_PARANOID: Final = "proc/sys/kernel/perf_event_paranoid"
_FOR_ALL: Final = 0
_EXPOSED: Final = "every user can then see when which program runs, and sample programs and the kernel"


def check_switches(machine: Machine) -> Finding:
    """Checks for perf and its permission; recording is optional."""
    if shutil.which("perf", path=machine.environment.get("PATH")) is None:
        return ok(_NAME, "not recorded without perf", "sudo apt-get install linux-perf (Ubuntu: linux-tools-generic)")
    if machine.uid == 0:
        return ok(_NAME, "recorded by perf, as root")
    found = check_switches_of_users(machine)
    return ok(_NAME, found.text, f"{found.remedy} ({_EXPOSED})" if found.remedy else "")


def check_switches_of_users(machine: Machine) -> Finding:
    """Checks that every user may record them; the fix names what that exposes."""
    level = machine.read(_PARANOID)
    if level.lstrip("-").isdecimal() and int(level) <= _FOR_ALL:
        return ok(_NAME, f"every user may record them (kernel.perf_event_paranoid is {level})")
    remedy = f"sudo sysctl kernel.perf_event_paranoid={_FOR_ALL}"
    text = f"only root may record them (kernel.perf_event_paranoid is {level or 'not to be seen'})"
    change = f"set kernel.perf_event_paranoid from {level} to {_FOR_ALL}: {_EXPOSED}"
    return warning(_NAME, text, remedy, SetValues(change, {_PARANOID: str(_FOR_ALL)}) if level else None)
