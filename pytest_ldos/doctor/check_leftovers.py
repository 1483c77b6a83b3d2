"""Checks for leftovers of recordings, and for processes that would disturb a measurement."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Final
from xml.etree import ElementTree as ET

import psutil

from pytest_ldos.base.errors import MendFailed
from pytest_ldos.doctor.changes import ChangeLog, Finding, Fix, Machine, ProcessFacts, ok, remove_stale, warning
from pytest_ldos.host.processes import OWNER_VARIABLE, living_owner, name_of_command
from pytest_ldos.host.temporary import SHORT_FOLDERS
from pytest_ldos.record.lttng import MI_NAMESPACE

_LTTNG: Final = ("lttng", "--no-sessiond")
_OURS: Final = re.compile(r"ldos-(\d+)-\d+")
_FOLDERS: Final = "ldos-lttng-*"


def _destroy(names: Sequence[str], machine: Machine, _: ChangeLog) -> None:
    for name in names:
        done = machine.run([*_LTTNG, "destroy", name])
        if done is None or done.returncode != 0:
            reason = "" if done is None else done.stderr.strip()
            raise MendFailed(f"session {name} cannot be destroyed: {reason}", remedy=f"lttng destroy {name}")


def check_sessions(machine: Machine) -> Finding:
    """Checks the sessions of the user's own session daemon; running recordings have private daemons."""
    names = list_sessions(machine)
    pids = {process.pid for process in machine.processes()}
    stale = [name for name in names for match in [_OURS.fullmatch(name)] if match and int(match.group(1)) not in pids]
    others = [name for name in names if name not in stale]
    if stale:
        fix = Fix(f"destroy {len(stale)} LTTng sessions; the traces stay", partial(_destroy, stale))
        remedy = "; ".join(f"lttng destroy {name}" for name in stale)
        return warning("LTTng sessions", f"left by runs that are gone: {', '.join(stale)}", remedy, fix)
    return ok("LTTng sessions", f"of others: {', '.join(others)}" if others else "none")


def list_sessions(machine: Machine) -> Sequence[str]:
    """Names of the sessions of the user's daemon, without starting it; empty if its answer is invalid."""
    done = machine.run([*_LTTNG, "--mi", "xml", "list"])
    if done is None or done.returncode != 0:
        return []
    try:
        root = ET.fromstring(done.stdout)  # noqa: S314 - written by the user's own session daemon
    except ET.ParseError:
        return []
    return [element.text or "" for element in root.iterfind(".//mi:session/mi:name", MI_NAMESPACE)]


def check_daemon_folders(machine: Machine) -> Finding:
    if not (stale := find_daemon_folders(machine)):
        return ok("recorders' folders", "none left behind")
    places = ", ".join(str(folder) for folder in dict.fromkeys(path.parent for path in stale))
    text = f"{len(stale)} in {places} whose session daemon is gone"
    fix = remove_stale(f"remove {len(stale)} folders {_FOLDERS} in {places}", stale, find_daemon_folders)
    return warning("recorders' folders", text, "ldos doctor --fix removes them", fix)


def find_daemon_folders(machine: Machine) -> Sequence[Path]:
    used = {process.environment.get("LTTNG_HOME") for process in machine.processes()}
    folders = dict.fromkeys((machine.temporary, *map(machine.path, SHORT_FOLDERS)))
    found = [path for folder in folders for path in sorted(folder.glob(_FOLDERS))]
    unused = [path for path in found if str(path) not in used and path.is_dir() and not path.is_symlink()]
    return [path for path in unused if path.lstat().st_uid == machine.uid]


PATIENCE_S: Final = 5.0
"""Seconds to wait after each signal. A Gazebo server takes 2.2 s from SIGINT to its end."""

_LADDER: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def end_process(process: ProcessFacts, *, patience_s: float = PATIENCE_S) -> None:
    """Ends a process; does nothing if it has ended, even if its pid was reused: its descriptor refers to no other one.

    Raises:
        MendFailed: not permitted, or it survived SIGKILL.

    Reference: pidfd_open(2), pidfd_send_signal(2).
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    is_same = False
    with contextlib.suppress(psutil.NoSuchProcess):
        is_same = psutil.Process(process.pid).create_time() == process.created
    try:
        if is_same and not any(_ends(descriptor, number, patience_s) for number in _LADDER):
            raise MendFailed(f"process {process.pid} survived SIGKILL", remedy="it waits in the kernel; restart")
    except PermissionError:
        raise MendFailed(f"process {process.pid} belongs to somebody else", remedy=f"sudo kill {process.pid}") from None
    finally:
        os.close(descriptor)


def _ends(descriptor: int, number: signal.Signals, patience_s: float) -> bool:
    """True if the process ends in time after the signal, which makes its descriptor readable."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, number)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(patience_s * 1000))


_MEASUREMENTS: Final = "measurements"
_COMMAND_WIDTH: Final = 60

_EARLIER: Final = "process of an earlier measurement"
_PROGRAMS: Final = frozenset(
    {
        "component_container",
        "component_container_mt",
        "controller_manager",
        "gzserver",
        "move_group",
        "parameter_bridge",
        "robot_state_publisher",
        "ros2_control_node",
        "rviz2",
        "spawner",
        "static_transform_publisher",
        "stress-ng",
    }
)
"""Programs of a stack, for processes that are identified only by name."""

_COMMANDS: Final = {
    re.compile(r"(^|/)gz(-sim\S*)? sim\b|(^|/)gz-sim-(server|main)"): "Gazebo",
    re.compile(r"\bros2-daemon\b|(^|/)_ros2_daemon\b"): "ros2 daemon",
    re.compile(r"(^|/)ros2 launch\b"): "ros2 launch",
    re.compile(r"(^|\s)--ros-args(\s|$)"): "ROS node",
    re.compile(r"\bpytest_ldos\.(robot\.stack|measure\.load)\."): _EARLIER,
}


def check_measurements(machine: Machine) -> Iterator[Finding]:
    """Checks for running measurements under any lock, which would disturb another one."""
    everything = machine.processes()
    owners = find_owners(machine, everything) - _ancestors(everything, os.getpid())
    running = [process for process in everything if process.pid in owners]
    if not running:
        yield ok(_MEASUREMENTS, "none goes on")
    for process in running:
        text = f"process {process.pid} measures: {_short_command(process)}"
        yield warning(_MEASUREMENTS, text, "wait until it ends: two at once disturb each other")


def check_strays(machine: Machine) -> Iterator[Finding]:
    """Checks for stray processes; one finding per process, so that each is decided separately."""
    strays = find_strays(machine)
    if not strays:
        yield ok("stray processes", "none of ROS 2, Gazebo or a load")
    for process, role in strays:
        orphan = ", left behind by its parent" if process.parent == 1 else ""
        text = f"{role} {process.pid}{orphan}: {_short_command(process)}"
        fix = Fix(f"end process {process.pid} ({role})", lambda *_, process=process: end_process(process))
        yield warning(f"stray process {process.pid}", text, f"kill {process.pid}", fix)


def find_strays(machine: Machine) -> Sequence[tuple[ProcessFacts, str]]:
    """This user's stray processes with their roles, without those of running measurements."""
    everything = machine.processes()
    spared = _ancestors(everything, os.getpid()) | _descendants(everything, find_owners(machine, everything))
    candidates = [process for process in everything if process.uid == machine.uid and process.pid not in spared]
    ours = [process for process in candidates if living_owner(process.environment) is None]
    return [(process, role) for process in ours for role in [role_of(process)] if role]


def find_owners(machine: Machine, processes: Sequence[ProcessFacts]) -> set[int]:
    """Measuring processes: the lock's holder, and owners of running processes under any lock."""
    owners = {machine.measuring(), *(living_owner(process.environment) for process in processes)}
    return {pid for pid in owners if pid is not None}


def role_of(process: ProcessFacts) -> str:
    """Role of a process in a stack; empty if it has none."""
    words = [PurePath(process.command[0]).name, *process.command[1:]] if process.command else [process.name]
    names = (words[0], *(PurePath(word).name for word in words[1:2]), name_of_command(process.command))
    if named := next((name for name in names if name in _PROGRAMS), ""):
        return named
    if OWNER_VARIABLE in process.environment:
        return _EARLIER
    line = " ".join(words)
    return next((role for pattern, role in _COMMANDS.items() if pattern.search(line)), "")


def _ancestors(processes: Sequence[ProcessFacts], pid: int) -> set[int]:
    parents = {process.pid: process.parent for process in processes}
    found: set[int] = set()
    while pid and pid not in found:
        found.add(pid)
        pid = parents.get(pid, 0)
    return found


def _descendants(processes: Sequence[ProcessFacts], pids: Collection[int]) -> set[int]:
    found = set(pids)
    size = -1
    while size != len(found):
        size = len(found)
        found |= {process.pid for process in processes if process.parent in found}
    return found


def _short_command(process: ProcessFacts) -> str:
    text = " ".join(process.command)
    return text if len(text) <= _COMMAND_WIDTH else f"{text[: _COMMAND_WIDTH - 1]}…"
