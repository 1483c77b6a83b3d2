"""Checks of CPU settings that make equal programs take unequal times.

Reference: the kernel's ``Documentation/admin-guide/pm/cpufreq.rst``; ros2_tracing's and
ros2_control's advice on latency: performance governor, no boost, no hyperthreads.
"""

from __future__ import annotations

from typing import Final

from pytest_ldos.doctor.finding import Finding, ok, warning
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.doctor.settings import SetValues
from pytest_ldos.host.cpu import (
    SMT_CONTROL,
    UNKNOWN,
    find_turbo_switch,
    read_governors,
    read_isolated_cpus,
    read_setting,
    read_smt,
    read_turbo,
)
from pytest_ldos.host.interference import describe_interference, describe_others

_STEADY: Final = "performance"
_NEW_CLASS: Final = "(another host class: its baselines are its own)"


def check_governor(machine: Machine) -> Finding:
    governors = read_governors(machine.root)
    others = {place: governor for place, governor in governors.items() if governor != _STEADY}
    if not governors:
        return ok("CPU governor", "none: no frequency scaling here (a virtual machine?)")
    if not others:
        return ok("CPU governor", f"{_STEADY} on all {len(governors)} CPUs")
    text = f"{', '.join(sorted(set(others.values())))} on {len(others)} of {len(governors)} CPUs"
    remedy = "sudo cpupower frequency-set -g performance"
    fix = SetValues(f"set the governor of {len(others)} CPUs to {_STEADY} {_NEW_CLASS}", dict.fromkeys(others, _STEADY))
    return warning("CPU governor", f"{text}: the clock follows the load", remedy, fix if _offered(machine) else None)


def _offered(machine: Machine) -> bool:
    """True if the kernel's driver offers the steady governor."""
    files = machine.path("sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_available_governors")
    return all(_STEADY in read_setting(file).split() for file in files)


def check_turbo(machine: Machine) -> Finding:
    turbo, switch = read_turbo(machine.root), find_turbo_switch(machine.root)
    if turbo == UNKNOWN or switch is None:
        return ok("CPU turbo", "not to be seen here")
    if turbo == "off":
        return ok("CPU turbo", "off")
    fix = SetValues(f"turn turbo off {_NEW_CLASS}", {switch.place: switch.off})
    remedy = f"echo {switch.off} | sudo tee /{switch.place}"
    return warning("CPU turbo", "on: the clock depends on heat and on what other cores do", remedy, fix)


def check_smt(machine: Machine) -> Finding:
    smt = read_smt(machine.root)
    if smt != "on":
        return ok("CPU threads (SMT)", "off" if smt == "off" else "not to be seen here")
    fix = SetValues(f"turn SMT off {_NEW_CLASS}", {SMT_CONTROL: "off"})
    can_switch = machine.read(SMT_CONTROL) == "on"
    return warning(
        "CPU threads (SMT)",
        "on: two threads share each core",
        f"echo off | sudo tee /{SMT_CONTROL}",
        fix if can_switch else None,
    )


def check_others(machine: Machine) -> Finding:
    found = machine.interference()
    load = describe_interference(found)
    if load:
        return warning("other programs", load, "end them, or measure when they have ended")
    return ok("other programs", describe_others(found) or "not to be seen here")


def check_isolated_cpus(machine: Machine) -> Finding:
    isolated = read_isolated_cpus(machine.root)
    text = f"{isolated}: nothing runs there unless it is pinned" if isolated else "none: the scheduler uses all CPUs"
    return ok("isolated CPUs", text)
