"""Checks for leftovers of recordings whose processes are gone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from pytest_ldos.base.errors import MendFailed
from pytest_ldos.doctor.changes import ChangeLog
from pytest_ldos.doctor.finding import Finding, ok, warning
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.doctor.removal import RemoveStale
from pytest_ldos.host.temporary import SHORT_FOLDERS

_NAMESPACE: Final = {"mi": "https://lttng.org/xml/ns/lttng-mi"}
_LTTNG: Final = ("lttng", "--no-sessiond")
_OURS: Final = re.compile(r"ldos-(\d+)-\d+")
_FOLDERS: Final = "ldos-lttng-*"
_HOME: Final = "LTTNG_HOME"


@dataclass(frozen=True)
class DestroySessions:
    """Ends recordings and keeps their files; see `Fix`."""

    description: str
    names: Sequence[str]
    is_reversible: bool = False

    def apply(self, machine: Machine, changes: ChangeLog) -> None:
        for name in self.names:
            done = machine.run([*_LTTNG, "destroy", name])
            if done is None or done.returncode != 0:
                reason = "" if done is None else done.stderr.strip()
                raise MendFailed(f"session {name} cannot be destroyed: {reason}", remedy=f"lttng destroy {name}")


def check_sessions(machine: Machine) -> Finding:
    """Checks the sessions of the user's own session daemon; our running recordings have daemons of their own."""
    names = list_sessions(machine)
    pids = {process.pid for process in machine.processes()}
    stale = [name for name in names for match in [_OURS.fullmatch(name)] if match and int(match.group(1)) not in pids]
    others = [name for name in names if name not in stale]
    if stale:
        fix = DestroySessions(f"destroy {len(stale)} LTTng sessions; the traces stay", stale)
        remedy = "; ".join(f"lttng destroy {name}" for name in stale)
        return warning("LTTng sessions", f"left by runs that are gone: {', '.join(stale)}", remedy, fix)
    return ok("LTTng sessions", f"of others: {', '.join(others)}" if others else "none")


def list_sessions(machine: Machine) -> Sequence[str]:
    """Names of the sessions of the user's daemon, which is not started; empty if its answer cannot be read."""
    done = machine.run([*_LTTNG, "--mi", "xml", "list"])
    if done is None or done.returncode != 0:
        return []
    try:
        root = ET.fromstring(done.stdout)  # noqa: S314 - written by the user's own session daemon
    except ET.ParseError:
        return []
    return [element.text or "" for element in root.iterfind(".//mi:session/mi:name", _NAMESPACE)]


def check_daemon_folders(machine: Machine) -> Finding:
    stale = find_daemon_folders(machine)
    if not stale:
        return ok("recorders' folders", "none left behind")
    places = ", ".join(str(folder) for folder in dict.fromkeys(path.parent for path in stale))
    text = f"{len(stale)} in {places} whose session daemon is gone"
    fix = RemoveStale(f"remove {len(stale)} folders {_FOLDERS} in {places}", stale, find_daemon_folders)
    return warning("recorders' folders", text, "ldos doctor --fix removes them", fix)


def find_daemon_folders(machine: Machine) -> Sequence[Path]:
    """Folders that a recorder made for its session daemon, and that no process uses any more."""
    used = {process.environment.get(_HOME) for process in machine.processes()}
    folders = dict.fromkeys((machine.temporary, *map(machine.path, SHORT_FOLDERS)))
    found = [path for folder in folders for path in sorted(folder.glob(_FOLDERS))]
    return [path for path in found if str(path) not in used and _is_of(path, machine)]


def _is_of(path: Path, machine: Machine) -> bool:
    return path.is_dir() and not path.is_symlink() and path.lstat().st_uid == machine.uid
