"""Checks of the tracer: its programs, its library, its kernel modules."""

from __future__ import annotations

import platform
import re
import tempfile
from itertools import chain
from pathlib import Path
from typing import Final

from pytest_ldos.base.tracepoints import TRACEPOINTS_OFF
from pytest_ldos.doctor.finding import Finding, error, ok, warning
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.record.choose import recording_available
from pytest_ldos.record.lttng import daemon_home

_OLDEST: Final = (2, 13)
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+")
_LIBRARY: Final = "liblttng-ust.so"
_GROUP: Final = "tracing"
_KERNEL_EVENTS: Final = "only for kernel events (who waited for a CPU)"


def check_tools(machine: Machine) -> Finding:
    done = machine.run(["lttng", "--version"])
    if done is None:
        return error("LTTng tools", "not installed: nothing can be recorded", "sudo apt-get install lttng-tools")
    found = _VERSION.search(done.stdout)
    version = found.group() if found else "of an unknown version"
    if found and tuple(map(int, version.split(".")[:2])) < _OLDEST:
        return error("LTTng tools", f"{version}; 2.13 or later is needed", "sudo apt-get install lttng-tools")
    return ok("LTTng tools", version)


def check_recording(machine: Machine) -> Finding:
    """Checks that this user can have a session daemon for a run alone."""
    answer = recording_available()
    if not answer.ok:
        return error("recording", answer.reason, answer.remedy)
    folder, usual = daemon_home().parent, Path(tempfile.gettempdir())
    elsewhere = f"; its sockets lie in {folder}: the path of {usual} is too long for them" if folder != usual else ""
    return ok("recording", f"possible{elsewhere}")


def check_library(machine: Machine) -> Finding:
    """Checks LTTng-UST by the number of its binary interface: 1 since version 2.13, 0 before."""
    numbers = {path.name.removeprefix(f"{_LIBRARY}.") for path in _library_files(machine)}
    if "1" in numbers:
        return ok("LTTng-UST", "2.13 or later (liblttng-ust.so.1)")
    if numbers:
        return error("LTTng-UST", "older than 2.13 (liblttng-ust.so.0)", "sudo apt-get install liblttng-ust1")
    return error("LTTng-UST", "not installed: programs have no tracepoints", "sudo apt-get install liblttng-ust-dev")


def check_tracepoints(machine: Machine) -> Finding:
    """Checks that ROS 2 is not told to emit nothing; a measured stack emits, whatever is set."""
    value = machine.environment.get(TRACEPOINTS_OFF, "")
    if value in ("", "0"):
        return ok("tracepoints of ROS 2", "not switched off")
    return warning(
        "tracepoints of ROS 2", f"{TRACEPOINTS_OFF}={value}: other traces will be empty", f"unset {TRACEPOINTS_OFF}"
    )


def _library_files(machine: Machine) -> list[Path]:
    named = [entry for entry in machine.environment.get("LD_LIBRARY_PATH", "").split(":") if entry]
    folders = [machine.path(place) for place in ("usr/lib", "usr/local/lib", "lib64", "usr/lib64", *named)]
    patterns = (f"{_LIBRARY}.[01]", f"*-linux-gnu*/{_LIBRARY}.[01]")
    return list(chain.from_iterable(folder.glob(pattern) for folder in folders for pattern in patterns))


def check_modules(machine: Machine) -> Finding:
    if machine.path("sys/module/lttng_tracer").is_dir():
        return ok("LTTng modules", "loaded")
    installed = machine.path(f"lib/modules/{platform.release()}")
    if next(installed.rglob("lttng-tracer.ko*"), None) is not None:
        return ok("LTTng modules", "installed, loaded when needed")
    remedy = f"sudo apt-get install lttng-modules-dkms, {_KERNEL_EVENTS}"
    return ok("LTTng modules", f"not installed for {platform.release()}", remedy)


def check_tracing_group(machine: Machine) -> Finding:
    if machine.uid == 0:
        return ok("tracing group", "not needed by root")
    if _GROUP in machine.groups:
        return ok("tracing group", "member")
    remedy = f"sudo usermod -aG {_GROUP} $USER, and log in again; {_KERNEL_EVENTS}"
    has_modules = machine.path("sys/module/lttng_tracer").is_dir()
    text = "not a member: kernel events cannot be recorded"
    return warning("tracing group", text, remedy) if has_modules else ok("tracing group", "not a member", remedy)
