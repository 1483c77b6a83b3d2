"""All checks in the order of the report, among them those of CPUs, priority, disk, tracer and programs.

Reference: the kernel's ``cpufreq.rst`` and ``perf-security.rst``; ros2_tracing's and ros2_control's advice on latency
(performance governor, no boost, no hyperthreads) and "Controller Manager" (SCHED_FIFO 50); sched(7).
"""

from __future__ import annotations

import os.path
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.base.files import writing
from pytest_ldos.base.ros2 import TRACEPOINTS_OFF
from pytest_ldos.doctor import check_leftovers, check_ros
from pytest_ldos.doctor.changes import Finding, Machine, Status, error, ok, set_values, warning
from pytest_ldos.host import cpu
from pytest_ldos.host.counters import has_capability
from pytest_ldos.host.interference import describe_interference, describe_others
from pytest_ldos.record.choose import recording_available
from pytest_ldos.record.lttng import daemon_home
from pytest_ldos.robot.stack.cpus import find_placement
from pytest_ldos.robot.stack.embedded.backend import embedded_available

_STEADY: Final = "performance"
_NEW_CLASS: Final = "(another host class: its baselines are its own)"


def check_governor(machine: Machine) -> Finding:
    governors = cpu.read_governors(machine.root)
    others = {place: governor for place, governor in governors.items() if governor != _STEADY}
    if not governors:
        return ok("CPU governor", "none: no frequency scaling here (a virtual machine?)")
    if not others:
        return ok("CPU governor", f"{_STEADY} on all {len(governors)} CPUs")
    text = f"{', '.join(sorted(set(others.values())))} on {len(others)} of {len(governors)} CPUs"
    remedy = "sudo cpupower frequency-set -g performance"
    fix = set_values(
        f"set the governor of {len(others)} CPUs to {_STEADY} {_NEW_CLASS}", dict.fromkeys(others, _STEADY)
    )
    files = machine.path("sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_available_governors")
    is_offered = all(_STEADY in cpu.read_setting(file).split() for file in files)
    return warning("CPU governor", f"{text}: the clock follows the load", remedy, fix if is_offered else None)


def check_turbo(machine: Machine) -> Finding:
    turbo, switch = cpu.read_turbo(machine.root), cpu.find_turbo_switch(machine.root)
    if turbo == cpu.UNKNOWN or switch is None:
        return ok("CPU turbo", "not to be seen here")
    if turbo == "off":
        return ok("CPU turbo", "off")
    fix = set_values(f"turn turbo off {_NEW_CLASS}", {switch.place: switch.off})
    remedy = f"echo {switch.off} | sudo tee /{switch.place}"
    return warning("CPU turbo", "on: the clock depends on heat and on what other cores do", remedy, fix)


def check_smt(machine: Machine) -> Finding:
    smt = cpu.read_smt(machine.root)
    if smt != "on":
        return ok("CPU threads (SMT)", "off" if smt == "off" else "not to be seen here")
    can_switch = machine.read(cpu.SMT_CONTROL) == "on"
    fix = set_values(f"turn SMT off {_NEW_CLASS}", {cpu.SMT_CONTROL: "off"}) if can_switch else None
    remedy = f"echo off | sudo tee /{cpu.SMT_CONTROL}"
    return warning("CPU threads (SMT)", "on: two threads share each core", remedy, fix)


def check_others(machine: Machine) -> Finding:
    found = machine.interference()
    if load := describe_interference(found):
        return warning("other programs", load, "end them, or measure when they have ended")
    return ok("other programs", describe_others(found) or "not to be seen here")


def check_isolated_cpus(machine: Machine) -> Finding:
    title, isolated = "isolated CPUs", cpu.read_isolated_cpus(machine.root)
    try:
        cpus = find_placement(machine.stack, machine.root).describe()
    except ConfigurationError as refused:
        return error(title, refused.message, refused.remedy)
    if cpus:
        return ok(title, f"{isolated or 'none'}; the stack runs on CPUs {cpus}")
    if not isolated:
        return ok(title, "none: the scheduler uses all CPUs")
    first, *more = sorted(cpu.parse_cpus(isolated))
    setting = f"{{ move_group = {first}, rest = {more[0]} }}" if more else '"isolated"'
    remedy = f"put the stack there: cpus = {setting} in [tool.ldos.stack]"
    return ok(title, f"{isolated}: nothing runs there unless it is pinned", remedy)


PRIORITY: Final = 50
_CAP_SYS_NICE: Final = 23
_LIMIT: Final = re.compile(r"^Max realtime priority\s+(\w+)", re.MULTILINE)


def check_realtime(machine: Machine) -> Finding:
    title = "real-time priority"
    if has_capability(_CAP_SYS_NICE, machine.root):
        return ok(title, "permitted (CAP_SYS_NICE)")
    limit = _limit(machine)
    if limit >= PRIORITY:
        return ok(title, f"permitted (rtprio {limit})")
    text = f"not permitted (rtprio {limit}): the control loop runs among all others"
    if not machine.wants_ros2:
        return ok(title, f"rtprio {limit}; the embedded stack asks for none")
    remedy = "as in ros2_control's manual: group realtime with `rtprio 99` in /etc/security/limits.conf, log in again"
    return warning(title, text, f"{remedy} (a container: --cap-add=sys_nice --ulimit rtprio=99)")


def _limit(machine: Machine) -> int:
    """Soft limit of this process, which its children inherit."""
    if (found := _LIMIT.search(machine.read("proc/self/limits"))) is None:
        return 0
    return 99 if found.group(1) == "unlimited" else int(found.group(1))


NEEDED_BYTES: Final = 1 << 30
"""Half of the limit for traces (``--ldos-traces-limit-mb``); with less space, a run may not finish."""

ENOUGH_BYTES: Final = 5 << 30
"""The limit plus the traces of one run, which are written before the oldest are deleted."""


def check_disk(machine: Machine, *, needed: int = NEEDED_BYTES, enough: int = ENOUGH_BYTES) -> Finding:
    place = machine.output.absolute()
    folder = next(each for each in (place, *place.parents) if os.path.exists(each))  # noqa: PTH110 - a folder that may not be entered is no error here
    elsewhere = "name another place: --ldos-output"
    try:
        with writing(machine.output, otherwise=elsewhere), tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except LdosError as refused:
        return error("disk", refused.message, refused.remedy)
    text = f"{free / (1 << 30):.1f} GiB free for results in {machine.output}"
    remedy = f"delete old traces (.ldos/runs), or {elsewhere}"
    if free < needed:
        return error("disk", text, remedy)
    return warning("disk", text, remedy) if free < enough else ok("disk", text)


_NAME: Final = "context switches"
_PARANOID: Final = "proc/sys/kernel/perf_event_paranoid"
_FOR_ALL: Final = 0
_EXPOSED: Final = "every user can then see when which program runs, and sample programs and the kernel"


def check_switches(machine: Machine) -> Finding:
    """Checks for perf and its permission; context switches are optional."""
    if shutil.which("perf", path=machine.environment.get("PATH")) is None:
        return ok(_NAME, "not recorded without perf", "sudo apt-get install linux-perf (Ubuntu: linux-tools-generic)")
    if machine.uid == 0:
        return ok(_NAME, "recorded by perf, as root")
    found = check_switches_of_users(machine)
    return ok(_NAME, found.text, f"{found.remedy} ({_EXPOSED})" if found.remedy else "")


def check_switches_of_users(machine: Machine) -> Finding:
    """Checks that every user may record them; the fix states what that exposes."""
    level = machine.read(_PARANOID)
    if level.lstrip("-").isdecimal() and int(level) <= _FOR_ALL:
        return ok(_NAME, f"every user may record them (kernel.perf_event_paranoid is {level})")
    remedy = f"sudo sysctl kernel.perf_event_paranoid={_FOR_ALL}"
    text = f"only root may record them (kernel.perf_event_paranoid is {level or 'not to be seen'})"
    change = f"set kernel.perf_event_paranoid from {level} to {_FOR_ALL}: {_EXPOSED}"
    return warning(_NAME, text, remedy, set_values(change, {_PARANOID: str(_FOR_ALL)}) if level else None)


_OLDEST: Final = (2, 13)
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+")
_LIBRARY: Final = "liblttng-ust.so"
_GROUP: Final = "tracing"
_KERNEL_EVENTS: Final = "only for kernel events (who waited for a CPU)"


def check_tools(machine: Machine) -> Finding:
    if (done := machine.run(["lttng", "--version"])) is None:
        return error("LTTng tools", "not installed: nothing can be recorded", "sudo apt-get install lttng-tools")
    found = _VERSION.search(done.stdout)
    version = found.group() if found else "of an unknown version"
    if found and tuple(map(int, version.split(".")[:2])) < _OLDEST:
        return error("LTTng tools", f"{version}; 2.13 or later is needed", "sudo apt-get install lttng-tools")
    return ok("LTTng tools", version)


def check_recording(machine: Machine) -> Finding:
    answer = recording_available()
    if not answer.ok:
        return error("recording", answer.reason, answer.remedy)
    folder, usual = daemon_home().parent, Path(tempfile.gettempdir())
    elsewhere = f"; its sockets lie in {folder}: the path of {usual} is too long for them" if folder != usual else ""
    return ok("recording", f"possible{elsewhere}")


def check_library(machine: Machine) -> Finding:
    """Checks LTTng-UST by its ABI number: 1 since version 2.13, 0 before."""
    named = [entry for entry in machine.environment.get("LD_LIBRARY_PATH", "").split(":") if entry]
    folders = [machine.path(place) for place in ("usr/lib", "usr/local/lib", "lib64", "usr/lib64", *named)]
    patterns = (f"{_LIBRARY}.[01]", f"*-linux-gnu*/{_LIBRARY}.[01]")
    files = [path for folder in folders for pattern in patterns for path in folder.glob(pattern)]
    numbers = {path.name.removeprefix(f"{_LIBRARY}.") for path in files}
    if "1" in numbers:
        return ok("LTTng-UST", "2.13 or later (liblttng-ust.so.1)")
    if numbers:
        return error("LTTng-UST", "older than 2.13 (liblttng-ust.so.0)", "sudo apt-get install liblttng-ust1")
    return error("LTTng-UST", "not installed: programs have no tracepoints", "sudo apt-get install liblttng-ust-dev")


def check_tracepoints(machine: Machine) -> Finding:
    """Checks that ROS 2's tracepoints are not disabled; in a measured stack they are always enabled."""
    value = machine.environment.get(TRACEPOINTS_OFF, "")
    title, text = "tracepoints of ROS 2", f"{TRACEPOINTS_OFF}={value}: other traces will be empty"
    return ok(title, "not switched off") if value in ("", "0") else warning(title, text, f"unset {TRACEPOINTS_OFF}")


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


def check_embedded(machine: Machine) -> Finding:
    answer = embedded_available()
    if answer.ok:
        return ok("embedded stack", "installed")
    if machine.wants_embedded:
        return error("embedded stack", answer.reason, answer.remedy)
    return ok("embedded stack", f"{answer.reason}; not needed with ROS 2")


def check_stress_ng(machine: Machine) -> Finding:
    if (done := machine.run(["stress-ng", "--version"])) is None:
        return warning("stress-ng", "not installed: no load that it makes", "sudo apt-get install stress-ng")
    return ok("stress-ng", (done.stdout.strip().splitlines() or ["installed"])[0].removeprefix("stress-ng, "))


_ROS: Final = (*check_ros.CHECKS, check_ros.check_domain, check_ros.check_discovery)

_ALL: Final[Sequence[Callable[[Machine], Finding]]] = (
    check_embedded,
    check_stress_ng,
    check_tools,
    check_recording,
    check_library,
    check_tracepoints,
    check_modules,
    check_tracing_group,
    check_switches,
    check_governor,
    check_turbo,
    check_smt,
    check_isolated_cpus,
    check_others,
    check_realtime,
    check_ros.check_receive_buffer,
    check_ros.check_send_buffer,
    check_ros.check_shared_memory,
    check_ros.check_stale_segments,
    check_leftovers.check_sessions,
    check_leftovers.check_daemon_folders,
    check_disk,
)


def diagnose(machine: Machine) -> list[Finding]:
    """Runs all checks without changes."""
    checks = (check_ros.check_distro, *(_ROS if machine.wants_ros2 and machine.has_ros2 else ()), *_ALL)
    found = [check(machine) for check in checks]
    return [*found, *check_leftovers.check_measurements(machine), *check_leftovers.check_strays(machine)]


def worst(findings: Sequence[Finding]) -> Status:
    return max((finding.status for finding in findings), key=list(Status).index, default=Status.OK)
