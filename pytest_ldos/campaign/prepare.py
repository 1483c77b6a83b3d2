"""Prepares the environment of a revision: a git worktree with an environment of its own, kept for later runs.

``.ldos/bases/COMMIT-RECIPE/`` holds ``checkout/``, ``setup.log``, and ``made.json`` once it is complete.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import PreparationFailed
from pytest_ldos.base.writable import writing
from pytest_ldos.campaign.kept_bases import CHECKOUT, NOTE, Announce, locked, mark_used, remove, remove_unused
from pytest_ldos.campaign.requirements import US, requirements_of
from pytest_ldos.campaign.versions import Revision, Version, base_version
from pytest_ldos.host.checkout import OF_ANOTHER_CHECKOUT
from pytest_ldos.host.logs import last_lines
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.measure.trial.artifacts import write_atomically
from pytest_ldos.scenario.base import BaseSpec

BASES: Final = "bases"
_LOG: Final = "setup"
_DIGITS: Final = 8
_WORD_EVERY_S: Final = 20.0
_NOT_PASSED_ON: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", *OF_ANOTHER_CHECKOUT)
_CLEAN: Final = ("env", *(f"--unset={name}" for name in _NOT_PASSED_ON))
_COMMIT: Final = re.compile("[0-9a-f]{4,64}")
_NO_HOOKS: Final = ("-c", "core.hooksPath=/dev/null")
_REMEDY: Final = 'say how its environment is made: [tool.ldos.base] setup = ["…"], or name a folder that has one'


@dataclass(frozen=True)
class _Place:
    """Paths of a revision's environment."""

    folder: Path
    revision: Revision

    @property
    def checkout(self) -> Path:
        return self.folder / CHECKOUT

    @property
    def project(self) -> Path:
        return self.checkout / self.revision.project

    @property
    def log(self) -> Path:
        return self.folder / f"{_LOG}.log"

    @property
    def note(self) -> Path:
        return self.folder / NOTE


def prepare(revision: Revision, spec: BaseSpec, *, store: Path, announce: Announce) -> Version:
    """Returns the revision with its environment, which is created unless it exists.

    Args:
        store: folder in which such environments are kept.
        announce: called with progress messages.

    Raises:
        PreparationFailed: contains the last lines of the log.
    """
    place = _Place(store.resolve() / f"{revision.commit}-{_digest(spec)}", revision)
    try:
        with locked(place.folder, announce):
            python = _python_of(place, spec, announce)
            mark_used(place.folder)
        remove_unused(place.folder.parent, checkout=revision.checkout, announce=announce)
    except OSError as error:
        raise PreparationFailed(
            f"base {revision.commit} cannot be built: {error}",
            remedy=f"let files be written and removed in {place.folder.parent}",
        ) from None
    return base_version(_name_of(revision), commit=revision.commit, python=python, project=place.project)


def _name_of(revision: Revision) -> str:
    """The commit, preceded by the name that the user gave if that is another one."""
    is_commit = _COMMIT.fullmatch(revision.text) and (
        revision.commit.startswith(revision.text) or revision.text.startswith(revision.commit)
    )
    return revision.commit if is_commit else f"{revision.text} ({revision.commit})"


def _python_of(place: _Place, spec: BaseSpec, announce: Announce) -> Path:
    """The environment's interpreter; creates the environment unless it exists."""
    python = place.project / spec.python
    if not _is_made(place, spec) or not python.is_file():
        _make(place, spec, announce)
    if not python.is_file():
        raise _failed(place, f"setup made no {spec.python}")
    return python


def _recipe(spec: BaseSpec) -> dict[str, object]:
    """Everything that an environment depends on, except its revision."""
    return {"setup": list(spec.setup), "python": spec.python, "version": sys.version}


def _digest(spec: BaseSpec) -> str:
    """Digest of the recipe. An environment made in another way may be in use, and is stored elsewhere."""
    return hashlib.sha256(json.dumps(_recipe(spec)).encode()).hexdigest()[:_DIGITS]


def _is_made(place: _Place, spec: BaseSpec) -> bool:
    try:
        made: object = json.loads(place.note.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return made == _recipe(spec)


def _make(place: _Place, spec: BaseSpec, announce: Announce) -> None:
    commit = place.revision.commit
    if place.folder.exists():
        announce(f"removing an environment of base {commit} that is unfinished or damaged")
        remove(place.folder, checkout=place.revision.checkout)
    announce(f"preparing base {commit}: the first time takes minutes; log: {place.log}")
    with writing(place.folder):
        place.folder.mkdir(parents=True)
    top = str(place.revision.checkout)
    add = ["git", "-C", top, *_NO_HOOKS, "worktree", "add", "--force", "--detach", str(place.checkout), commit]
    _run(add, place, announce, folder=place.folder)
    for command in _commands(place, spec):
        _run(command, place, announce, folder=place.project)
    write_atomically(place.note, json.dumps(_recipe(spec), indent=1) + "\n")


def _commands(place: _Place, spec: BaseSpec) -> list[Sequence[str]]:
    if spec.setup:
        return [spec.setup]
    try:
        requirements = requirements_of(place.project)
    except ValueError as error:
        raise _failed(place, f"its pyproject.toml cannot be used: {error}", details=last_lines(place.log)) from None
    if not requirements:
        raise _failed(place, f"its pyproject.toml names neither a project nor {US}")
    python = str(place.project / spec.python)
    environment = str(Path(python).parents[1])
    return [[sys.executable, "-m", "venv", environment], [python, "-m", "pip", "install", *requirements]]


def _run(command: Sequence[str], place: _Place, announce: Announce, *, folder: Path) -> None:
    """Runs a setup step to its end; its output goes to the log.

    Raises:
        PreparationFailed: its status is not 0, or it could not be started.
    """
    with writing(place.log), place.log.open("a", encoding="utf-8") as log:
        log.write(f"$ {shlex.join(command)}\n")
    group = ProcessGroup(log_directory=place.folder, prefix=(*_CLEAN, "-C", str(folder)))
    began_s = time.monotonic()
    try:
        child = group.start(_LOG, command)
        while (code := _await_end(child.process)) is None:
            announce(f"preparing base {place.revision.commit}: {time.monotonic() - began_s:.0f} s")
    finally:
        group.stop()
    if code != 0:
        raise _failed(place, f"`{shlex.join(command)}` ended with exit code {code}", details=child.last_lines())


def _await_end(process: subprocess.Popen[str]) -> int | None:
    """The exit code, or ``None`` if the process is still running after a while."""
    try:
        return process.wait(_WORD_EVERY_S)
    except subprocess.TimeoutExpired:
        return None


def _failed(place: _Place, reason: str, *, details: str = "") -> PreparationFailed:
    return PreparationFailed(
        f"base {place.revision.commit} cannot be built: {reason}",
        details=details,
        remedy=f"see {place.log}; {_REMEDY}",
    )
