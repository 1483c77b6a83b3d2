"""The checks' view of a machine; findings, fixes, and the record of changes, which can be undone."""

from __future__ import annotations

import grp
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import psutil

from pytest_ldos.base.errors import LdosError, MendFailed, RecordUnreadable
from pytest_ldos.base.files import write_atomically, writing
from pytest_ldos.host.availability import find_distro, run_program
from pytest_ldos.host.cpu import read_setting
from pytest_ldos.host.interference import Interference, measure_briefly
from pytest_ldos.host.lock import find_holder
from pytest_ldos.host.temporary import state_folder
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind

PROGRAM_TIMEOUT_S: Final = 20.0


@dataclass(frozen=True)
class ProcessFacts:
    """A running process; `created` distinguishes it from any other of its pid. The environment may be unreadable."""

    pid: int
    parent: int
    name: str
    command: tuple[str, ...]
    created: float
    uid: int
    environment: Mapping[str, str] = field(default_factory=dict)


def list_processes() -> list[ProcessFacts]:
    attributes = ["pid", "ppid", "name", "cmdline", "create_time", "uids", "status", "environ"]
    found = [process.info for process in psutil.process_iter(attributes)]
    return [
        ProcessFacts(
            pid=info["pid"],
            parent=info["ppid"],
            name=info["name"],
            command=tuple(info["cmdline"] or ()),
            created=info["create_time"],
            uid=info["uids"].effective,
            environment=info["environ"] or {},
        )
        for info in found
        if info["status"] != psutil.STATUS_ZOMBIE and info["uids"] is not None
    ]


def _our_groups() -> list[str]:
    return [entry.gr_name for entry in grp.getgrall() if entry.gr_gid in os.getgroups()]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The state of a machine that the checks read.

    Attributes:
        environment: environment of processes to start, by the user with `uid` and `groups`.
        output: folder of results and traces.
        stack: the stack to be measured.
        python_path: folders to search for Python packages, instead of ``sys.path``.
        measuring: pid of the running measuring session.
        interference: measures other processes' use of the machine for a moment.
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    uid: int = field(default_factory=os.geteuid)
    groups: Sequence[str] = field(default_factory=_our_groups)
    output: Path = Path(".ldos")
    stack: StackSpec = field(default_factory=StackSpec)
    python_path: Sequence[str] | None = None
    processes: Callable[[], Sequence[ProcessFacts]] = list_processes
    measuring: Callable[[], int | None] = find_holder
    interference: Callable[[], Interference] = measure_briefly

    @property
    def asks_for_ros2(self) -> bool:
        """True if ROS 2 is requested by name."""
        return self.stack.kind is StackKind.ROS2

    @property
    def wants_ros2(self) -> bool:
        """True if ROS 2 is requested by name, or sourced with an automatically chosen stack."""
        return self.asks_for_ros2 or (self.stack.kind is StackKind.AUTO and self.has_ros2)

    @property
    def wants_embedded(self) -> bool:
        return self.stack.kind is StackKind.EMBEDDED or (self.stack.kind is StackKind.AUTO and not self.has_ros2)

    @property
    def has_ros2(self) -> bool:
        distro = find_distro(self.environment, root=self.root)
        return distro is not None and distro.is_sourced

    @property
    def temporary(self) -> Path:
        named = self.environment.get("TMPDIR", "")
        return Path(named) if named else self.path("tmp")

    def path(self, place: str) -> Path:
        """Path below the root; `place` may be absolute."""
        return self.root / place.lstrip("/")

    def read(self, place: str) -> str:
        """Content of a small file; empty if it cannot be read."""
        return read_setting(self.path(place))

    def write(self, place: str, value: str) -> None:
        """Writes a setting, through sudo unless the user is root; raises `MendFailed` if neither is permitted."""
        path = self.path(place)
        if self.uid != 0:
            done = self.run(["sudo", "-n", "tee", str(path)], given=value)
            if done is None or done.returncode != 0:
                raise MendFailed(f"{path} can be written by root only", remedy=f"echo {value} | sudo tee {path}")
            return
        try:
            # Like a shell's `>`, except that the file must exist.
            with open(os.open(path, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:  # noqa: PTH123
                file.write(value)
        except OSError as error:
            raise MendFailed(
                f"{path} cannot be written: {error.strerror}",
                remedy="in a container or virtual machine, set it on the host",
            ) from None

    def run(self, command: Sequence[str], *, given: str = "") -> subprocess.CompletedProcess[str] | None:
        """Runs a program; ``None`` if it is not installed or does not return."""
        if shutil.which(command[0], path=self.environment.get("PATH")) is None:
            return None
        try:
            return run_program(command, timeout_s=PROGRAM_TIMEOUT_S, environment=self.environment, given=given)
        except (OSError, subprocess.TimeoutExpired):
            return None


_FILE: Final = "ldos/doctor-changes.json"
_BOOT_ID: Final = "proc/sys/kernel/random/boot_id"
_SCHEMA: Final = 1


def changes_file(environment: Mapping[str, str]) -> Path:
    return state_folder(environment) / _FILE


@dataclass(frozen=True)
class Change:
    """A changed setting, by the path of its file below the machine's root; it lasts until the next boot."""

    place: str
    before: str
    after: str
    boot: str


class ChangeLog:
    """Private record of changes, written before the machine is changed; raises `RecordUnreadable` if invalid."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._changes = {change.place: change for change in _read(file)}

    @property
    def changes(self) -> list[Change]:
        return list(self._changes.values())

    def set_value(self, machine: Machine, place: str, value: str) -> None:
        """Changes a setting, which `undo` can restore; raises `MendFailed` also if the kernel ignored it."""
        known, before = self._changes.get(place), machine.read(place)
        is_ours = known is not None and known.boot == machine.read(_BOOT_ID) and known.after == before
        first = known.before if known is not None and is_ours else before
        others = {each: change for each, change in self._changes.items() if each != place}
        restored = {**self._changes} if is_ours else others
        self._save({**self._changes, place: Change(place, first, value, machine.read(_BOOT_ID))})
        try:
            machine.write(place, value)
        except MendFailed:
            self._save(restored)
            raise
        if machine.read(place) != value:  # the kernel may ignore a written value
            self._save(restored)
            raise MendFailed(f"{machine.path(place)} still says {machine.read(place)!r}")

    def undo(self, machine: Machine) -> Iterator[str]:
        """Restores everything, the last change first; yields a line for each. After `MendFailed`, the others stay."""
        for change in reversed(self.changes):
            path, now = machine.path(change.place), machine.read(change.place)
            if change.boot != machine.read(_BOOT_ID):
                message = "the machine has restarted since, which restored it"
            elif now == change.before:
                message = f"is {now} already"
            elif now != change.after:
                message = f"somebody else set it to {now} since; left as it is"
            else:
                machine.write(change.place, change.before)
                message = f"{now} → {change.before}"
            self._save({each: other for each, other in self._changes.items() if other is not change})
            yield f"{path}: {message}"

    def _save(self, changes: dict[str, Change]) -> None:
        """Replaces the record's changes; if the file cannot be written, the old ones are kept."""
        try:
            with writing(self._file):
                if changes:
                    self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    document = {"schema": _SCHEMA, "changes": [asdict(change) for change in changes.values()]}
                    write_atomically(self._file, json.dumps(document, indent=2), mode=0o600)
                else:
                    self._file.unlink(missing_ok=True)
        except LdosError as error:
            raise MendFailed(error.message, remedy="set XDG_STATE_HOME to a folder of yours") from None
        self._changes = changes


def _read(file: Path) -> list[Change]:
    try:
        document: Any = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise RecordUnreadable(f"{file} cannot be read: {error}", remedy="look at it, then delete it") from None
    try:
        if document["schema"] != _SCHEMA:
            raise RecordUnreadable(f"{file} is of schema {document['schema']}", remedy="use the version that wrote it")
        changes = [Change(**each) for each in document["changes"]]
    except (KeyError, TypeError):
        raise RecordUnreadable(f"{file} is no record of changes", remedy="look at it, then delete it") from None
    return changes


@dataclass(frozen=True)
class Fix:
    """A change of this machine, described in the imperative; reversible if `ChangeLog` can restore the former state.

    `apply` raises `MendFailed` with an equivalent command if it failed.
    """

    description: str
    apply: Callable[[Machine, ChangeLog], None]
    is_reversible: bool = False


class Status(StrEnum):
    """Severity: an error prevents measurements, a warning reduces their precision."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """A line of the diagnosis; with status `OK`, its remedy is an improvement."""

    name: str
    status: Status
    text: str
    remedy: str = ""
    fix: Fix | None = None


def ok(name: str, text: str, remedy: str = "") -> Finding:
    return Finding(name, Status.OK, text, remedy)


def warning(name: str, text: str, remedy: str, fix: Fix | None = None) -> Finding:
    return Finding(name, Status.WARNING, text, remedy, fix)


def error(name: str, text: str, remedy: str) -> Finding:
    return Finding(name, Status.ERROR, text, remedy)


def set_values(description: str, values: Mapping[str, str]) -> Fix:
    """Writes values by path, which last until they are undone or the machine restarts."""

    def apply(machine: Machine, changes: ChangeLog) -> None:
        for place, value in values.items():
            changes.set_value(machine, place, value)

    return Fix(description, apply, is_reversible=True)


def mend(
    findings: Sequence[Finding], machine: Machine, changes: ChangeLog, *, agrees: Callable[[Fix], bool]
) -> Iterator[str]:
    """Applies the fixes that `agrees` accepts, in order, and yields the results; after a failure, tries the others."""
    for fix in [finding.fix for finding in findings if finding.fix is not None]:
        if not agrees(fix):
            continue
        try:
            fix.apply(machine, changes)
        except MendFailed as error:
            yield f"not done: {fix.description}: {error}"
        else:
            yield f"done: {fix.description}"


def describe_question(fix: Fix) -> str:
    """The question before a fix; states if the fix cannot be undone."""
    return f"{fix.description}?" if fix.is_reversible else f"{fix.description} (cannot be undone)?"


def remove_stale(description: str, paths: Sequence[Path], find: Callable[[Machine], Sequence[Path]]) -> Fix:
    """Removes the found files and folders that are still unused when the fix is applied."""

    def apply(machine: Machine, _: ChangeLog) -> None:
        still = set(find(machine))
        for path in paths:
            try:
                if path in still and path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                elif path in still:
                    path.unlink(missing_ok=True)
            except OSError as error:
                raise MendFailed(f"{path} cannot be removed: {error.strerror}", remedy=f"sudo rm -r {path}") from None

    return Fix(description, apply)
