"""A machine as a tree of files, on which nothing is wrong."""

from __future__ import annotations

import dataclasses
import platform
from pathlib import Path
from typing import Any

from pytest_ldos.doctor.changes import ChangeLog, Fix, Machine
from pytest_ldos.host.interference import Interference
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import StackKind

CPU = "sys/devices/system/cpu"
BOOT_ID = "proc/sys/kernel/random/boot_id"
HEALTHY = {
    BOOT_ID: "8a1e",
    "proc/self/limits": "Limit Soft Limit Hard Limit Units\nMax realtime priority     99   99\n",
    "proc/self/status": "Name:\tpytest\nCapEff:\t0000000000000000\n",
    "proc/sys/net/core/rmem_max": "2147483647",
    "proc/sys/net/core/wmem_max": "12582912",
    f"{CPU}/cpu0/cpufreq/scaling_available_governors": "performance powersave",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpu1/cpufreq/scaling_available_governors": "performance powersave",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "performance",
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/isolated": "",
    f"{CPU}/smt/active": "0",
    f"{CPU}/smt/control": "off",
    f"lib/modules/{platform.release()}/updates/dkms/lttng-tracer.ko.zst": "",
    "usr/lib/x86_64-linux-gnu/liblttng-ust.so.1": "",
}


def build_machine(root: Path, files: dict[str, str] | None = None, **facts: Any) -> Machine:
    """A healthy machine below `root`, but for what is given; a file that is ``None`` is missing.

    Its processes are none, its programs those of this machine, its user root.
    """
    for place, text in {**HEALTHY, **(files or {})}.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(text)
    for place in ("dev/shm", "tmp"):
        (root / place).mkdir(parents=True, exist_ok=True)
    if "stack" in facts:
        facts["stack"] = StackSpec(kind=StackKind(facts["stack"]), ros2=Ros2Spec(**facts.pop("ros2", {})))
    given: dict[str, Any] = {
        "root": root,
        "environment": {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        "uid": 0,
        "groups": (),
        "output": root / "results",
        "processes": list,
        "measuring": lambda: None,
        "interference": lambda: Interference(seconds=1.0, cpus=2, others_s=0.02, steal_s=0.0),
    }
    return Machine(**{**given, **facts})


def add_program(folder: Path, name: str, script: str) -> Path:
    """A shell script that can be run by its name; returns the folder, which belongs on the path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return folder


def values_set_by(fix: Fix, machine: Machine) -> dict[str, str]:
    """Values by path that a fix sets on a machine of these files, as root."""
    changes = ChangeLog(machine.root / "changes.json")
    fix.apply(dataclasses.replace(machine, uid=0), changes)
    return {each.place: each.after for each in changes.changes}
