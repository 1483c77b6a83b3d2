"""Finds versions by name: prepared environments, or ROS 2 stacks whose workspaces are built here.

``.ldos/bases/COMMIT-RECIPE/`` holds ``checkout/``, ``setup.log``, and a note once it is complete.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from pytest_ldos.base.errors import ConfigurationError, PreparationFailed
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.build import Build, build_workspace
from pytest_ldos.campaign.versions.version import (
    BASES,
    CHECKOUT,
    Announce,
    Revision,
    Version,
    commit_in,
    digest_of,
    find_revision,
    find_version,
    head_version,
    kept,
    project_in,
    read_note,
    resolve_base,
    resolve_head,
    run_step,
    version_of,
    write_note,
)
from pytest_ldos.campaign.versions.workspace import (
    SETUP,
    Underlay,
    Workspace,
    entries_of,
    find_prefix,
    find_underlay,
    is_unchanged,
    source_over,
    tree_digest,
)
from pytest_ldos.host.availability import find_distro
from pytest_ldos.host.checkout import OF_ANOTHER_CHECKOUT
from pytest_ldos.host.processes import last_lines
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.robot.stack.protocol import Installation
from pytest_ldos.robot.stack.ros2.installed import ros2_available
from pytest_ldos.robot.stack.ros2.state import find_launch_file
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.scenario_table import BaseSpec
from pytest_ldos.scenario.words import StackKind

_T = TypeVar("_T", dict[str, Any], list[Any])

_WORD_EVERY_S: Final = 20.0
_NOT_PASSED_ON: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", *OF_ANOTHER_CHECKOUT)
_REMEDY: Final = 'say how its environment is made: [tool.ldos.base] setup = ["…"], or name a folder that has one'


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A revision's checkout, which is set up once."""

    revision: Revision
    name: str
    store: Path
    announce: Announce
    made_from: Mapping[str, object]  # everything that its content depends on, except the revision
    makes: str = ""  # file below the project's folder that a complete checkout must have; empty for none
    is_quick: bool = False  # True if its setup takes negligible time

    @cached_property
    def folder(self) -> Path:
        return self.store.resolve() / f"{self.revision.commit}-{digest_of(self.made_from)}"

    @property
    def project(self) -> Path:
        return self.folder / CHECKOUT / self.revision.project

    @property
    def log(self) -> Path:
        return self.folder / "setup.log"

    def is_complete(self) -> bool:
        return not self.makes or (self.project / self.makes).is_file()

    def failed(self, reason: str, *, details: str = "") -> PreparationFailed:
        return PreparationFailed(
            f"{self.name} cannot be built: {reason}", details=details, remedy=f"see {self.log}; {_REMEDY}"
        )

    def made(self, commands: Callable[[], Sequence[Sequence[str]]]) -> AbstractContextManager[int]:
        """Yields the lock of the checkout, which is created if necessary; `PreparationFailed` has the log's end."""

        def make(lock: int) -> None:
            revision, top = self.revision, self.folder / CHECKOUT
            warning = "" if self.is_quick else f": the first time takes minutes; log: {self.log}"
            self.announce(f"preparing {self.name}{warning}")
            git = ["git", "-C", str(revision.checkout), "-c", "core.hooksPath=/dev/null"]
            self._run([*git, "worktree", "add", "--force", "--detach", str(top), revision.commit], self.folder, lock)
            if not self.project.is_dir():
                raise PreparationFailed(
                    f"{self.name} cannot be built: it has no folder {revision.project}, in which the project lies here",
                    remedy="name a revision that has it, or compare with a stored baseline",
                )
            for command in commands():
                self._run(command, self.project, lock)
            if not self.is_complete():
                raise self.failed(f"setup made no {self.makes}")
            write_note(self.folder, self.made_from)

        return kept(
            self.folder,
            self.name,
            checkout=self.revision.checkout,
            announce=self.announce,
            is_whole=lambda: read_note(self.folder) == self.made_from and self.is_complete(),
            make=make,
        )

    def _run(self, command: Sequence[str], folder: Path, lock: int) -> None:
        def describe(passed_s: float) -> list[str]:
            rounded_s = passed_s // _WORD_EVERY_S * _WORD_EVERY_S
            return [f"preparing {self.name}: {rounded_s:.0f} s"] if rounded_s else []

        code = run_step(
            command,
            folder=folder,
            log=self.log,
            environment={name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON},
            holds=(lock,),
            describe=describe,
            announce=self.announce,
        )
        if code != 0:
            raise self.failed(f"`{shlex.join(command)}` ended with exit code {code}", details=last_lines(self.log))


US: Final = "pytest-ldos"
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_KINDS: Final[Mapping[type[object], str]] = {dict: "table", list: "list"}


def requirements_of(project: Path) -> list[str]:
    """Arguments of ``pip install`` for a project: itself, and its requirements that include pytest-ldos.

    Those are searched in the dependencies, or else in the extras and the dependency groups. Raises a `ValueError` if
    its pyproject.toml is invalid TOML, or a value has the wrong type.
    """
    try:
        document = tomllib.loads((project / "pyproject.toml").read_text("utf-8-sig"))
    except FileNotFoundError:
        return []
    metadata = _get(document, "project", {})
    if _normal(str(metadata.get("name", ""))) == US:
        return [".[embedded]"]
    own = ["."] if metadata else []
    if any(map(_asks_for_us, _get(metadata, "dependencies", []))):
        return own
    groups = (_get(metadata, "optional-dependencies", {}), _get(document, "dependency-groups", {}))
    asked = [each for named in groups for name in named for each in _get(named, name, []) if _asks_for_us(each)]
    return [*own, *dict.fromkeys(asked)]


def _get(table: Mapping[str, Any], key: str, default: _T) -> _T:
    value = table.get(key, default)
    if not isinstance(value, type(default)):
        raise ValueError(f"{key} is no {_KINDS[type(default)]}")
    return value


def _asks_for_us(requirement: object) -> bool:
    name = _NAME.match(requirement) if isinstance(requirement, str) else None
    return name is not None and _normal(name.group()) == US


def _normal(name: str) -> str:
    """A package name, normalised for comparison (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def prepare(revision: Revision, role: Role, spec: BaseSpec, *, store: Path, announce: Announce) -> Version:
    """Returns the revision with its environment, which is created if necessary; raises as `Checkout.made`."""
    checkout = Checkout(
        revision=revision,
        name=f"{role} {revision.commit}",
        store=store,
        announce=announce,
        made_from={"setup": list(spec.setup), "python": spec.python, "version": sys.version},
        makes=spec.python,
    )

    def commands() -> list[Sequence[str]]:
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

    with checkout.made(commands):
        python, project = checkout.project / spec.python, checkout.project
    return version_of(role, revision.name, commit=revision.commit, python=python, project=project)


@dataclass(frozen=True, kw_only=True)
class VersionFinder:
    """Finds versions of a project, and builds those of a ROS 2 workspace over an underlay that is identified once."""

    stack: StackSpec
    spec: BaseSpec
    root: Path
    folder: Path  # base folder of relative paths
    output: Path  # folder of results, which also holds builds and checkouts
    announce: Announce

    def find(self, role: Role, text: str) -> Version:
        """The version named by `text`: a revision; as a base, also a folder with an environment or an install prefix.

        Raises:
            ConfigurationError: there is none of this name.
            PreparationFailed: it cannot be prepared, built or started.
        """
        if self.stack.ros2.is_running:
            remedy = "compare with a stored baseline, or with a saved run: ldos compare"
            raise ConfigurationError(f"{text} cannot be started: the stack runs already, as one version", remedy=remedy)
        if resolve_kind(self.stack) is StackKind.ROS2:
            return self.built(role, text)
        found = find_version(role, text, folder=self.folder, root=self.root)
        if isinstance(found, Revision):
            return prepare(found, role, self.spec, store=self.store, announce=self.announce)
        return found

    @property
    def store(self) -> Path:
        return self.output / BASES

    def built(self, role: Role, text: str) -> Version:
        if role is Role.BASE:
            return self.base(text)
        return self._named(resolve_head(text, folder=self.folder, root=self.root), role)

    def head(self) -> Version:
        """Builds the checkout: from its commit if the workspace is unchanged, else from the working files."""
        here = head_version(self.root)
        name, commit = here.name, (here.commit, here.commit_unknown)
        revision = find_revision("HEAD", self.root)
        if (
            revision is not None
            and is_unchanged(self.root, self._folders)
            # Setup may create workspaces of which the revision has no file.
            and (self.spec.setup or all(entries_of(revision, each) for each in self._folders))
        ):
            return self._of_revision(revision, role=Role.HEAD, name=name, commit=commit)
        return self._in_place(self.root, role=Role.HEAD, name=name, commit=commit)

    def base(self, text: str) -> Version:
        """The base named by `text`: a revision, a checkout, or an install prefix; raises as `find`."""
        found = resolve_base(text, folder=self.folder, root=self.root)
        if isinstance(found, Revision):
            return self._named(found, Role.BASE)
        project = project_in(found, self.root) or found
        if (found / SETUP).is_file() or not Workspace(project, self._folders).packages():
            return self._startable(find_prefix(text, folder=self.folder))
        commit = commit_in(found)
        name = f"base {text} ({commit[0]})" if commit[0] else f"base {text}"
        return self._in_place(project, role=Role.BASE, name=name, commit=commit)

    def _named(self, revision: Revision, role: Role) -> Version:
        return self._of_revision(revision, role=role, name=f"{role} {revision.name}", commit=(revision.commit, ""))

    def _of_revision(self, revision: Revision, *, role: Role, name: str, commit: tuple[str, str]) -> Version:
        commands = [self.spec.setup] if self.spec.setup else []
        checkout = Checkout(
            revision=revision,
            name=name,
            store=self.store,
            announce=self.announce,
            made_from={"workspace": True, "setup": list(self.spec.setup)},
            is_quick=not commands,
        )
        with checkout.made(lambda: commands) as lock:
            workspace = Workspace(checkout.project, self._folders, scratch_parent=checkout.folder)
            workspace.require(name)
            sources = None if self.spec.setup else tree_digest(revision, self._folders)
            build = self._build(name, workspace, sources or workspace.digest(self.store), lock=lock)
            return self._made(build, role=role, commit=commit)

    def _in_place(self, project: Path, *, role: Role, name: str, commit: tuple[str, str]) -> Version:
        workspace = Workspace(project, self._folders)
        workspace.require(name)
        sources = workspace.digest(self.store)
        build = self._build(name, workspace, sources)
        watched = replace(build, is_unchanged=lambda: workspace.digest(self.store) == sources)
        return self._made(watched, role=role, commit=commit)

    def _build(self, name: str, workspace: Workspace, sources: Mapping[str, object], *, lock: int = -1) -> Build:
        underlay, python = self._underlay, workspace.project / self.spec.python
        if self.spec.setup and python.is_file():  # the Python environment that setup created in a checkout
            underlay = underlay.below(python.parents[1])
        return Build(
            name=name,
            workspace=workspace,
            sources=sources,
            spec=self.spec,
            underlay=underlay,
            store=self.store,
            lock=lock,
        )

    @property
    def _folders(self) -> tuple[str, ...]:
        return self.spec.workspaces(self.root)

    @cached_property
    def _underlay(self) -> Underlay:
        workspace = Workspace(self.root, self._folders)
        own = [
            self.store,
            *workspace.places,
            *(each.parent / "install" for each in workspace.places if each.name == "src"),
        ]
        return find_underlay(own, workspace.packages(), store=self.store)

    def _made(self, build: Build, *, role: Role, commit: tuple[str, str]) -> Version:
        project = build.workspace.project
        launch_file = self._launch_file_in(project, build.name)
        environment, packages = build.underlay.environment, frozenset[str]()
        if not self._has_files_alone(build.workspace):
            built = build_workspace(build, checkout=self.root, announce=self.announce)
            environment, packages = source_over(environment, built.prefix / "local_setup.bash"), built.packages
        version = Version(
            role=role,
            name=build.name,
            commit=commit[0],
            commit_unknown=commit[1],
            installation=Installation(environment=environment, launch_file=launch_file),
            project=project,
            packages=packages,
        )
        return self._startable(version)

    def _has_files_alone(self, workspace: Workspace) -> bool:
        """True for a project of a launch file and its files, without packages to build."""
        of_project = Path(self.stack.ros2.launch_file).is_relative_to(self.root)
        return of_project and not self.spec.workspace and not self.spec.packages_up_to and not workspace.packages()

    def _launch_file_in(self, project: Path, name: str) -> str:
        file = Path(self.stack.ros2.launch_file)
        if not file.is_absolute() or not file.is_relative_to(self.root):
            return ""
        own = project / file.relative_to(self.root)
        if not own.is_file():
            raise _lacks(name, f"has no launch file {file.relative_to(self.root)}")
        return "" if own == file else str(own)

    def _startable(self, version: Version) -> Version:
        installation, stack = version.installation, self.stack
        try:
            find_launch_file(installation.launch_file or stack.ros2.launch_file, installation.environment)
        except ConfigurationError as error:
            raise _lacks(version.name, f"cannot be started: {error.message}", error.remedy) from None
        found = ros2_available(stack, installation.environment)
        if found.ok:
            return version
        theirs, ours, distro = find_distro(installation.environment), find_distro(None), ""
        if theirs is not None and ours is not None and theirs.name != ours.name:
            distro = f" (it is of ROS 2 {theirs.name}, head of {ours.name})"
        raise _lacks(version.name, f"cannot be started: {found.reason}{distro}", found.remedy)


def _lacks(name: str, what: str, remedy: str = "") -> PreparationFailed:
    elsewhere = "where the other version alone has it, compare with a stored baseline instead of --ldos-base"
    return PreparationFailed(f"{name} {what}", remedy=f"{remedy}; {elsewhere}" if remedy else elsewhere)
