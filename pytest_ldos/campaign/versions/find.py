"""Finds versions by name: prepared environments, or ROS 2 stacks whose workspaces are built here."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError, PreparationFailed
from pytest_ldos.base.text import listed
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.build import Build, build_workspace, find_stale
from pytest_ldos.campaign.versions.checkouts import Checkout, Recipe, checked_out, prepare
from pytest_ldos.campaign.versions.kept import BASES, Announce
from pytest_ldos.campaign.versions.version import (
    Revision,
    Version,
    commit_in,
    find_revision,
    find_version,
    head_version,
    project_in,
    resolve_base,
    resolve_head,
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
from pytest_ldos.host.ros import find_distro
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.robot.stack.protocol import Installation
from pytest_ldos.robot.stack.ros2.installed import ros2_available
from pytest_ldos.robot.stack.ros2.launch_events import find_launch_file
from pytest_ldos.scenario.base import BaseSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind

_HEAD: Final = "HEAD"


@dataclass(frozen=True, kw_only=True)
class BuiltVersions:
    """Finds and builds versions of a project's ROS 2 workspace, over one underlay.

    Attributes:
        root: root of the project.
        folder: base folder of relative paths.
        store: folder of builds and checkouts.
        announce: called with progress messages.
    """

    stack: StackSpec
    spec: BaseSpec
    root: Path
    folder: Path
    store: Path
    announce: Announce

    def find(self, role: Role, text: str) -> Version:
        """The version named by `text`; see `resolve_head` and `base`.

        Raises:
            ConfigurationError: there is none of this name.
            PreparationFailed: it cannot be built or started.
        """
        if role is Role.BASE:
            return self.base(text)
        return self._named(resolve_head(text, folder=self.folder, root=self.root), role)

    def head(self) -> Version:
        """Builds the checkout: from its commit if the workspace is unchanged, else from the working files.

        Raises:
            PreparationFailed: it cannot be built or started.
        """
        here = head_version(self.root)
        name, commit = here.name, (here.commit, here.commit_unknown)
        revision = find_revision(_HEAD, self.root)
        if revision is not None and is_unchanged(self.root, self._folders) and self._is_tracked(revision):
            return self._of_revision(revision, role=Role.HEAD, name=name, commit=commit)
        return self._in_place(self.root, role=Role.HEAD, name=name, commit=commit)

    def base(self, text: str) -> Version:
        """The base named by `text`: a revision, a checkout, or an install prefix.

        Raises:
            ConfigurationError: there is none of this name.
            PreparationFailed: it cannot be built or started.
        """
        found = resolve_base(text, folder=self.folder, root=self.root)
        if isinstance(found, Revision):
            return self._named(found, Role.BASE)
        project = project_in(found, self.root) or found
        if (found / SETUP).is_file() or not Workspace(project, self._folders).packages():
            return self._startable(find_prefix(text, folder=self.folder))
        commit = commit_in(found)
        name = f"base {text} ({commit[0]})" if commit[0] else f"base {text}"
        return self._in_place(project, role=Role.BASE, name=name, commit=commit)

    def _is_tracked(self, revision: Revision) -> bool:
        """True if the revision contains files of each workspace; otherwise setup may create them."""
        return bool(self.spec.setup) or all(entries_of(revision, each) for each in self._folders)

    def _named(self, revision: Revision, role: Role) -> Version:
        return self._of_revision(revision, role=role, name=f"{role} {revision.name}", commit=(revision.commit, ""))

    def _of_revision(self, revision: Revision, *, role: Role, name: str, commit: tuple[str, str]) -> Version:
        commands = [self.spec.setup] if self.spec.setup else []
        made_from = {"workspace": True, "setup": list(self.spec.setup)}
        recipe = Recipe(made_from, lambda _: commands, is_quick=not commands)
        with checked_out(revision, recipe, name=name, store=self.store, announce=self.announce) as checkout:
            workspace = Workspace(checkout.project, self._folders, scratch_parent=checkout.folder)
            workspace.require(name)
            sources = None if self.spec.setup else tree_digest(revision, self._folders)
            build = self._build(name, workspace, sources or workspace.digest(self.store), checkout=checkout)
            return self._made(build, role=role, commit=commit)

    def _in_place(self, project: Path, *, role: Role, name: str, commit: tuple[str, str]) -> Version:
        workspace = Workspace(project, self._folders)
        workspace.require(name)
        sources = workspace.digest(self.store)
        build = self._build(name, workspace, sources)
        watched = replace(build, is_unchanged=lambda: workspace.digest(self.store) == sources)
        return self._made(watched, role=role, commit=commit)

    def _build(
        self, name: str, workspace: Workspace, sources: Mapping[str, object], *, checkout: Checkout | None = None
    ) -> Build:
        return Build(
            name=name,
            workspace=workspace,
            sources=sources,
            spec=self.spec,
            underlay=self._activated(workspace.project),
            store=self.store,
            lock=checkout.lock if checkout else -1,
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

    def _activated(self, project: Path) -> Underlay:
        """The underlay with the Python environment that setup created in a checkout, if any."""
        python = project / self.spec.python
        if not (self.spec.setup and python.is_file()):
            return self._underlay
        return self._underlay.below(python.parents[1])

    def _made(self, build: Build, *, role: Role, commit: tuple[str, str]) -> Version:
        """Builds a version and sources it."""
        built = build_workspace(build, checkout=self.root, announce=self.announce)
        environment = source_over(build.underlay.environment, built.prefix / "local_setup.bash")
        project = build.workspace.project
        installation = Installation(environment=environment, launch_file=self._launch_file_in(project, build.name))
        return self._startable(
            Version(
                role=role,
                name=build.name,
                commit=commit[0],
                commit_unknown=commit[1],
                installation=installation,
                project=project,
                packages=built.packages,
            )
        )

    def _launch_file_in(self, project: Path, name: str) -> str:
        """The version's own launch file if the settings name a file of the project; else empty."""
        file = Path(self.stack.ros2.launch_file)
        if not file.is_absolute() or not file.is_relative_to(self.root):
            return ""
        own = project / file.relative_to(self.root)
        if not own.is_file():
            raise _lacks(name, f"has no launch file {file.relative_to(self.root)}")
        return "" if own == file else str(own)

    def _startable(self, version: Version) -> Version:
        """The version, if its stack can be started.

        Raises:
            PreparationFailed: the message has the version and its missing parts.
        """
        installation, stack = version.installation, self.stack
        try:
            find_launch_file(installation.launch_file or stack.ros2.launch_file, installation.environment)
        except ConfigurationError as error:
            raise _lacks(version.name, f"cannot be started: {error.message}", error.remedy) from None
        found = ros2_available(stack, installation.environment)
        if not found.ok:
            reason = f"cannot be started: {found.reason}{_other_distro(installation)}"
            raise _lacks(version.name, reason, found.remedy)
        return version


def _other_distro(installation: Installation) -> str:
    theirs, ours = (find_distro(each) for each in (installation.environment, None))
    if theirs is None or ours is None or theirs.name == ours.name:
        return ""
    return f" (it is of ROS 2 {theirs.name}, head of {ours.name})"


def _lacks(name: str, what: str, remedy: str = "") -> PreparationFailed:
    elsewhere = "where the other version alone has it, compare with a stored baseline instead of --ldos-base"
    return PreparationFailed(f"{name} {what}", remedy=f"{remedy}; {elsewhere}" if remedy else elsewhere)


@dataclass(frozen=True, kw_only=True)
class VersionFinder:
    """Finds versions of a project.

    Attributes:
        stack: the stack under test.
        root: root of the project.
        folder: base folder of relative paths.
        output: folder of results, which also holds builds and checkouts.
        announce: called with progress messages.
    """

    stack: StackSpec
    spec: BaseSpec
    root: Path
    folder: Path
    output: Path
    announce: Announce

    def find(self, role: Role, text: str) -> Version:
        """The version named by `text`: a revision; as a base, also a folder with an environment or an install prefix.

        Raises:
            ConfigurationError: there is none of this name.
            PreparationFailed: it cannot be prepared, built or started.
        """
        if resolve_kind(self.stack) is StackKind.ROS2:
            return self.built.find(role, text)
        found = find_version(role, text, folder=self.folder, root=self.root)
        if isinstance(found, Revision):
            return prepare(found, role, self.spec, store=self.output / BASES, announce=self.announce)
        return found

    @cached_property
    def built(self) -> BuiltVersions:
        """Versions of the ROS 2 workspace, over an underlay that is identified once."""
        return BuiltVersions(
            stack=self.stack,
            spec=self.spec,
            root=self.root,
            folder=self.folder,
            store=self.output / BASES,
            announce=self.announce,
        )


_SHOWN: Final = 5


def describe_packages(base: Version, head: Version) -> tuple[str, ...]:
    """A note on packages of only one of two built versions."""
    if base.packages is None or head.packages is None or base.packages == head.packages:
        return ()
    alone = {"base": base.packages - head.packages, "head": head.packages - base.packages}
    named = "; ".join(f"only {role} has {listed(sorted(names), _SHOWN)}" for role, names in alone.items() if names)
    return (f"packages of the workspaces differ: {named}",)


def describe_distros(base: Version, head: Version) -> tuple[str, ...]:
    """A note if the versions run on different ROS 2 distributions."""
    ours, theirs = (_distro(each) for each in (head, base))
    if not ours or not theirs or ours == theirs:
        return ()
    return (f"the base runs on ROS 2 {theirs}, head on {ours}: what differs may be the distribution",)


def describe_stale(root: Path, folders: Sequence[str]) -> tuple[str, ...]:
    """A note on packages of the project's workspaces with changes since their install."""
    workspace = Workspace(root, tuple(each for each in folders if (root / each).is_dir()))
    stale = find_stale(workspace)
    if not stale:
        return ()
    remedy = "build the workspace, or measure with --ldos-build"
    return (
        f"the sources of {listed(sorted(stale), _SHOWN)} are newer than what is installed and was measured: {remedy}",
    )


def _distro(version: Version) -> str:
    environment = version.installation.environment
    return (os.environ if environment is None else environment).get("ROS_DISTRO", "")
