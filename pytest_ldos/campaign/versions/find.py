"""Finds the version that a user names, and prepares or builds it for the stack under test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.built import BuiltVersions
from pytest_ldos.campaign.versions.kept import BASES, Announce
from pytest_ldos.campaign.versions.named import find_version
from pytest_ldos.campaign.versions.prepare import prepare
from pytest_ldos.campaign.versions.version import Revision, Version
from pytest_ldos.robot.stack.choose import resolve_kind
from pytest_ldos.scenario.base import BaseSpec
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind


@dataclass(frozen=True, kw_only=True)
class VersionFinder:
    """Finds versions of a project.

    Attributes:
        stack: the stack under test.
        root: root of the project.
        folder: folder that relative paths start from.
        output: folder of results, which keeps what is made.
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
        """Versions of the ROS 2 workspace, over an underlay that is looked at once."""
        return BuiltVersions(
            stack=self.stack,
            spec=self.spec,
            root=self.root,
            folder=self.folder,
            store=self.output / BASES,
            announce=self.announce,
        )
