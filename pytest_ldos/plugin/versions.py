"""The versions that a run measures, found and prepared once for all its scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.plugin.base_settings import describe_base_settings
from pytest_ldos.plugin.settings import Settings

if TYPE_CHECKING:
    from pytest_ldos.campaign.order import Role
    from pytest_ldos.campaign.versions.find import VersionFinder
    from pytest_ldos.campaign.versions.version import Version
    from pytest_ldos.scenario.model import StackSpec
    from pytest_ldos.scenario.words import StackKind

Announce = Callable[[str], None]


class MeasuredVersions:
    """Head, and the base that ``--ldos-base`` names.

    Attributes:
        base_asked: the base as it was named; empty where head is measured alone.
    """

    def __init__(self, settings: Settings) -> None:
        self.base_asked = str(settings.value("base"))
        self._settings = settings
        self._found: dict[tuple[Role, StackKind, str], Version | LdosError] = {}

    def stack_to_start(self, stack: StackSpec) -> StackSpec:
        """The stack under test; `auto` is ROS 2 where head's workspace is to be built, whatever is installed of it.

        Raises:
            Unavailable: a workspace is to be built, and no ROS 2 is sourced.
        """
        from pytest_ldos.robot.stack.choose import demand_ros2

        return demand_ros2(stack) if self._settings.value("build") else stack

    def find(self, stack: StackSpec, *, announce: Announce) -> Mapping[Role, Version]:
        """Both versions of a stack. Head is built where the base is, so that only their sources differ.

        Raises:
            ConfigurationError: there is no such base.
            PreparationFailed: one of them could not be made, or cannot be started.
        """
        from pytest_ldos.campaign.order import Role

        base = self._once(Role.BASE, stack, lambda: self._finder(stack, announce).find(self.base_asked))
        return {Role.BASE: base, Role.HEAD: self.head(stack, announce=announce, like=base)}

    def head(self, stack: StackSpec, *, announce: Announce, like: Version | None = None) -> Version:
        """Head: built where that was asked for, or where the base was; else as it is installed.

        Args:
            like: the base.

        Raises:
            PreparationFailed: it could not be built, or cannot be started.
        """
        from pytest_ldos.campaign.order import Role
        from pytest_ldos.campaign.versions.version import head_version

        is_asked = self._settings.value("build") and _is_ros2(stack)
        if is_asked or (like is not None and like.packages is not None):
            return self._once(Role.HEAD, stack, self._finder(stack, announce).built.head)
        return head_version(self._settings.root)

    def describe(self, versions: Mapping[Role, Version], stack: StackSpec, item: pytest.Item) -> tuple[str, ...]:
        """Notes on differences of base and head that the comparison does not show, or that explain it."""
        from pytest_ldos.campaign.order import Role
        from pytest_ldos.campaign.versions.notes import describe_distros, describe_packages

        base, head = versions[Role.BASE], versions[Role.HEAD]
        of_both = (*describe_packages(base, head), *describe_distros(base, head))
        return (
            *self.describe_head(head, stack),
            *of_both,
            *describe_base_settings(base, self._settings, item),
        )

    def describe_head(self, head: Version, stack: StackSpec) -> tuple[str, ...]:
        """A note where head's workspace was not built, and its sources are newer than what is installed of it."""
        from pytest_ldos.campaign.versions.notes import describe_stale

        if head.packages is not None or not _is_ros2(stack):
            return ()
        root = self._settings.root
        return describe_stale(root, self._settings.sources.toml.base.workspaces(root))

    def _once(self, role: Role, stack: StackSpec, find: Callable[[], Version]) -> Version:
        """A version as it was found the first time; one that could not be prepared is not tried again."""
        from pytest_ldos.robot.stack.choose import resolve_kind

        key = role, resolve_kind(stack), repr(stack.ros2)
        if key not in self._found:
            try:
                self._found[key] = find()
            except LdosError as error:
                self._found[key] = error
        found = self._found[key]
        if isinstance(found, LdosError):
            raise found
        return found

    def _finder(self, stack: StackSpec, announce: Announce) -> VersionFinder:
        from pytest_ldos.campaign.versions.find import VersionFinder

        settings = self._settings
        return VersionFinder(
            stack=stack,
            spec=settings.sources.toml.base,
            root=settings.root,
            folder=settings.folder,
            output=settings.output,
            announce=announce,
        )


def _is_ros2(stack: StackSpec) -> bool:
    from pytest_ldos.robot.stack.choose import resolve_kind
    from pytest_ldos.scenario.words import StackKind

    return resolve_kind(stack) is StackKind.ROS2
