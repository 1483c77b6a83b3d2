"""Prepares checkouts of revisions: git worktrees in which setup commands were run.

``.ldos/bases/COMMIT-RECIPE/`` holds ``checkout/``, ``setup.log``, and a note once it is complete.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import PreparationFailed
from pytest_ldos.base.writable import writing
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.kept import CHECKOUT, Announce, digest_of, kept, read_note, write_note
from pytest_ldos.campaign.versions.version import Revision, Version, version_of
from pytest_ldos.host.checkout import OF_ANOTHER_CHECKOUT
from pytest_ldos.host.kept import KeptTree
from pytest_ldos.host.processes import last_lines
from pytest_ldos.scenario.base import BaseSpec

_TO_THE_LOG: Final = ("sh", "-c", 'exec "$@" >&2', "sh")
_LOOK_EVERY_S: Final = 0.5

Describe = Callable[[float], Iterable[str]]
"""Returns the text to announce after some seconds of a command; repeated texts are not announced."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command to run.

    Attributes:
        folder: working directory.
        log: file of the command line and its output.
        environment: replaces the environment of this process.
        holds: descriptors, such as a lock's, that stay open until all its processes have ended.
    """

    command: Sequence[str]
    folder: Path
    log: Path
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    holds: Sequence[int] = ()


def run_step(step: Step, *, describe: Describe, announce: Announce) -> int:
    """Runs a command and returns its exit code. It ends, with all its children, if this process ends."""
    with writing(step.log), step.log.open("a", encoding="utf-8") as log:
        log.write(f"$ {shlex.join(step.command)}\n")
    unset = [f"--unset={name}" for name in sorted(set(os.environ) - set(step.environment))]
    command = [*_TO_THE_LOG, "env", *unset, "-C", str(step.folder), *step.command]
    tree = KeptTree("setup", command, log=step.log, environment=step.environment, holds=step.holds)
    try:
        return _await_end(tree.child.process, describe, announce)
    finally:
        tree.stop()


def _await_end(process: subprocess.Popen[str], describe: Describe, announce: Announce) -> int:
    began_s, shown, code = time.monotonic(), "", None
    while code is None:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(_LOOK_EVERY_S)
        for text in describe(time.monotonic() - began_s):
            if text != shown:
                announce(shown := text)
    return code


def every_s(seconds: float, text: str) -> Describe:
    """A progress text with the elapsed time, repeated at an interval in seconds."""
    return lambda passed_s: [f"{text}: {passed_s // seconds * seconds:.0f} s"] if passed_s >= seconds else []


_WORD_EVERY_S: Final = 20.0
_NOT_PASSED_ON: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", *OF_ANOTHER_CHECKOUT)
_NO_HOOKS: Final = ("-c", "core.hooksPath=/dev/null")
_REMEDY: Final = 'say how its environment is made: [tool.ldos.base] setup = ["…"], or name a folder that has one'


@dataclass(frozen=True)
class Checkout:
    """Paths of a revision's checkout.

    Attributes:
        name: of the version, for messages.
        lock: descriptor of its lock while locked.
    """

    folder: Path
    revision: Revision
    name: str
    lock: int = -1

    @property
    def top(self) -> Path:
        return self.folder / CHECKOUT

    @property
    def project(self) -> Path:
        return self.top / self.revision.project

    @property
    def log(self) -> Path:
        return self.folder / "setup.log"

    def failed(self, reason: str, *, details: str = "") -> PreparationFailed:
        """The error for a revision that could not be set up."""
        return PreparationFailed(
            f"{self.name} cannot be built: {reason}",
            details=details,
            remedy=f"see {self.log}; {_REMEDY}",
        )


@dataclass(frozen=True)
class Recipe:
    """The way to set up a checkout.

    Attributes:
        made_from: everything that the result depends on, except the revision.
        commands: setup commands, run in order in the checkout's project folder.
        makes: file below the project's folder that a complete checkout must have; empty for none.
        is_quick: true if the commands take negligible time.
    """

    made_from: Mapping[str, object]
    commands: Callable[[Checkout], Sequence[Sequence[str]]]
    makes: str = ""
    is_quick: bool = False

    def is_followed(self, checkout: Checkout) -> bool:
        """True for a complete checkout of this recipe."""
        return read_note(checkout.folder) == self.made_from and self.is_complete(checkout)

    def is_complete(self, checkout: Checkout) -> bool:
        return not self.makes or (checkout.project / self.makes).is_file()


@contextmanager
def checked_out(
    revision: Revision, recipe: Recipe, *, name: str, store: Path, announce: Announce
) -> Iterator[Checkout]:
    """Yields a locked checkout of the revision; creates it if it does not exist.

    Args:
        name: of the version, for messages.
        store: folder in which checkouts are kept.
        announce: called with progress messages.

    Raises:
        PreparationFailed: contains the last lines of the log.
    """
    folder = store.resolve() / f"{revision.commit}-{digest_of(recipe.made_from)}"
    checkout = Checkout(folder, revision, name)
    with kept(
        folder,
        name,
        checkout=revision.checkout,
        announce=announce,
        is_whole=lambda: recipe.is_followed(checkout),
        make=lambda lock: _make(replace(checkout, lock=lock), recipe, announce),
    ) as lock:
        yield replace(checkout, lock=lock)


def _make(checkout: Checkout, recipe: Recipe, announce: Announce) -> None:
    revision, folder = checkout.revision, checkout.folder
    warning = "" if recipe.is_quick else f": the first time takes minutes; log: {checkout.log}"
    announce(f"preparing {checkout.name}{warning}")
    top = str(revision.checkout)
    add = ["git", "-C", top, *_NO_HOOKS, "worktree", "add", "--force", "--detach", str(checkout.top), revision.commit]
    _run(add, checkout, announce, folder=folder)
    if not checkout.project.is_dir():
        raise PreparationFailed(
            f"{checkout.name} cannot be built: it has no folder {revision.project}, in which the project lies here",
            remedy="name a revision that has it, or compare with a stored baseline",
        )
    for command in recipe.commands(checkout):
        _run(command, checkout, announce, folder=checkout.project)
    if not recipe.is_complete(checkout):
        raise checkout.failed(f"setup made no {recipe.makes}")
    write_note(folder, recipe.made_from)


def _run(command: Sequence[str], checkout: Checkout, announce: Announce, *, folder: Path) -> None:
    """Runs a command.

    Raises:
        PreparationFailed: its exit status is not 0, or it could not be started.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
    step = Step(command=command, folder=folder, log=checkout.log, environment=environment, holds=(checkout.lock,))
    describe = every_s(_WORD_EVERY_S, f"preparing {checkout.name}")
    code = run_step(step, describe=describe, announce=announce)
    if code != 0:
        reason = f"`{shlex.join(command)}` ended with exit code {code}"
        raise checkout.failed(reason, details=last_lines(checkout.log))


US: Final = "pytest-ldos"
_OURSELVES: Final = ".[embedded]"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


def requirements_of(project: Path) -> list[str]:
    """Arguments of ``pip install`` for a project: itself, and its requirements that include pytest-ldos.

    Raises:
        ValueError: its pyproject.toml is invalid TOML, or a value has the wrong type.
    """
    try:
        document = tomllib.loads((project / "pyproject.toml").read_text("utf-8-sig"))
    except FileNotFoundError:
        return []
    metadata = _table(document, "project")
    if _normal(str(metadata.get("name", ""))) == US:
        return [_OURSELVES]
    own = ["."] if metadata else []
    return own if _asks_for_us(_list(metadata, "dependencies")) else [*own, *dict.fromkeys(_asked_elsewhere(document))]


def _asked_elsewhere(document: Mapping[str, Any]) -> Iterator[str]:
    """Requirements of pytest-ldos among the extras and the dependency groups."""
    for named in (_table(_table(document, "project"), "optional-dependencies"), _table(document, "dependency-groups")):
        for name in named:
            yield from (each for each in _list(named, name) if _asks_for_us([each]))


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"{key} is no table")
    return value


def _list(table: Mapping[str, Any], key: str) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise ValueError(f"{key} is no list")
    return value


def _asks_for_us(requirements: list[Any]) -> bool:
    names = (_NAME.match(each) for each in requirements if isinstance(each, str))
    return any(_normal(name.group()) == US for name in names if name)


def _normal(name: str) -> str:
    """A package name, normalised for comparison (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def prepare(revision: Revision, role: Role, spec: BaseSpec, *, store: Path, announce: Announce) -> Version:
    """Returns the revision with its environment; creates it if it does not exist.

    Args:
        store: folder of such environments.
        announce: called with progress messages.

    Raises:
        PreparationFailed: contains the last lines of the log.
    """
    recipe = Recipe(
        {"setup": list(spec.setup), "python": spec.python, "version": sys.version},
        lambda checkout: _commands(checkout, spec),
        makes=spec.python,
    )
    name = f"{role} {revision.commit}"
    with checked_out(revision, recipe, name=name, store=store, announce=announce) as checkout:
        python, project = checkout.project / spec.python, checkout.project
    return version_of(role, revision.name, commit=revision.commit, python=python, project=project)


def _commands(checkout: Checkout, spec: BaseSpec) -> list[Sequence[str]]:
    if spec.setup:
        return [spec.setup]
    try:
        requirements = requirements_of(checkout.project)
    except ValueError as error:
        reason = f"its pyproject.toml cannot be used: {error}"
        raise checkout.failed(reason, details=last_lines(checkout.log)) from None
    if not requirements:
        raise checkout.failed(f"its pyproject.toml names neither a project nor {US}")
    python = str(checkout.project / spec.python)
    environment = str(Path(python).parents[1])
    return [[sys.executable, "-m", "venv", environment], [python, "-m", "pip", "install", *requirements]]
