"""Findings, fixes, and the record of changes, which can be undone."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol

from pytest_ldos.base.errors import MendFailed, RecordUnreadable
from pytest_ldos.doctor.machine import Machine
from pytest_ldos.host.temporary import state_folder

_FILE: Final = "ldos/doctor-changes.json"
_BOOT_ID: Final = "proc/sys/kernel/random/boot_id"
_SCHEMA: Final = 1


def changes_file(environment: Mapping[str, str]) -> Path:
    """File with a user's changes."""
    return state_folder(environment) / _FILE


@dataclass(frozen=True)
class Change:
    """A changed setting.

    Attributes:
        place: the setting's file, relative to the machine's root.
        boot: id of the boot in which it was made; settings last until the next one.
    """

    place: str
    before: str
    after: str
    boot: str


class ChangeLog:
    """Record of changes in a private file, which is written before the machine is changed.

    Raises:
        RecordUnreadable: the file is not a valid record.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._changes = {change.place: change for change in _read(file)}

    @property
    def changes(self) -> list[Change]:
        return list(self._changes.values())

    def set_value(self, machine: Machine, place: str, value: str) -> None:
        """Changes a setting, which `undo` can restore.

        Raises:
            MendFailed: it or the record cannot be written, or the kernel ignored it.
        """
        known, before = self._changes.get(place), machine.read(place)
        is_ours = known is not None and known.boot == machine.read(_BOOT_ID) and known.after == before
        first = known.before if known is not None and is_ours else before
        self._keep(Change(place, first, value, machine.read(_BOOT_ID)))
        try:
            machine.write(place, value)
            _demand(machine, place, value)
        except MendFailed:
            if known is not None and is_ours:
                self._keep(known)
            else:
                self._forget(place)
            raise

    def undo(self, machine: Machine) -> Iterator[str]:
        """Restores everything, the last change first; yields a line for each.

        Raises:
            MendFailed: a setting or the record cannot be written; the remaining changes stay in the record.
        """
        for change in reversed(self.changes):
            message = _put_back(change, machine)
            self._forget(change.place)
            yield message

    def _keep(self, change: Change) -> None:
        self._save({**self._changes, change.place: change})

    def _forget(self, place: str) -> None:
        self._save({each: change for each, change in self._changes.items() if each != place})

    def _save(self, changes: dict[str, Change]) -> None:
        """Replaces the record's changes; if the file cannot be written, the old ones are kept."""
        try:
            if changes:
                _write(self._file, changes.values())
            else:
                self._file.unlink(missing_ok=True)
        except OSError as error:
            raise MendFailed(
                f"{self._file} cannot be written: {error.strerror}", remedy="set XDG_STATE_HOME to a folder of yours"
            ) from None
        self._changes = changes


def _put_back(change: Change, machine: Machine) -> str:
    path, now = machine.path(change.place), machine.read(change.place)
    if change.boot != machine.read(_BOOT_ID):
        return f"{path}: the machine has restarted since, which restored it"
    if now == change.before:
        return f"{path}: is {now} already"
    if now != change.after:
        return f"{path}: somebody else set it to {now} since; left as it is"
    machine.write(change.place, change.before)
    return f"{path}: {now} → {change.before}"


def _demand(machine: Machine, place: str, value: str) -> None:
    """Raises `MendFailed` unless a setting has the value, because the kernel may ignore a written value."""
    if machine.read(place) != value:
        raise MendFailed(f"{machine.path(place)} still says {machine.read(place)!r}")


def _write(file: Path, changes: Iterable[Change]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    document = {"schema": _SCHEMA, "changes": [asdict(change) for change in changes]}
    # `mkstemp` makes it readable by its user only.
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as temporary:
            json.dump(document, temporary, indent=2)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


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


class Fix(Protocol):
    """A change of this machine.

    Attributes:
        description: description in the imperative: ``set the governor of 4 CPUs to performance``.
        is_reversible: true if `ChangeLog` can restore the former state.
    """

    @property
    def description(self) -> str: ...

    @property
    def is_reversible(self) -> bool: ...

    def apply(self, machine: Machine, changes: ChangeLog) -> None:
        """Applies the fix.

        Raises:
            MendFailed: it failed; the remedy is an equivalent command.
        """


class Status(StrEnum):
    """Severity: an error prevents measurements, a warning reduces their precision."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis.

    Attributes:
        name: name of the check.
        text: description.
        remedy: what to do; with status `OK`, an optional improvement.
        fix: applies the remedy, if possible from here.
    """

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


@dataclass(frozen=True)
class SetValues:
    """Writes values by path; see `Fix`. They last until they are undone or the machine restarts."""

    description: str
    values: Mapping[str, str]
    is_reversible: bool = True

    def apply(self, machine: Machine, changes: ChangeLog) -> None:
        for place, value in self.values.items():
            changes.set_value(machine, place, value)


def mend(
    findings: Sequence[Finding], machine: Machine, changes: ChangeLog, *, agrees: Callable[[Fix], bool]
) -> Iterator[str]:
    """Applies fixes in order, and yields the result of each.

    If one fails, the others are still tried.

    Args:
        agrees: called right before each fix; True to apply it.
    """
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


@dataclass(frozen=True)
class RemoveStale:
    """Removes files and folders that are still unused when the fix is applied; see `Fix`.

    Attributes:
        paths: the unused files and folders that were found.
        find: finds them again, so that those now in use are kept.
    """

    description: str
    paths: Sequence[Path]
    find: Callable[[Machine], Sequence[Path]]
    is_reversible: bool = False

    def apply(self, machine: Machine, changes: ChangeLog) -> None:
        still = set(self.find(machine))
        for path in self.paths:
            if path in still:
                _remove(path)


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise MendFailed(f"{path} cannot be removed: {error.strerror}", remedy=f"sudo rm -r {path}") from None
