"""The versions that take turns in a run, found and prepared once for all its scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.plugin.base_settings import Project, ReadScenario, describe_base_settings
from pytest_ldos.scenario.settings import Sources

if TYPE_CHECKING:
    from pytest_ldos.campaign.order import Role
    from pytest_ldos.campaign.versions import Version
    from pytest_ldos.scenario.model import StackSpec
    from pytest_ldos.scenario.words import StackKind


class Turns:
    """Head and what ``--ldos-base`` names."""

    def __init__(self, config: pytest.Config, sources: Sources) -> None:
        self.asked = str(sources.value("base"))
        self._folder = config.invocation_params.dir
        self._root = config.rootpath
        self._sources = sources
        self._found: dict[StackKind, Version | LdosError] = {}

    def versions(self, stack: StackSpec, *, store: Path, announce: Callable[[str], None]) -> Mapping[Role, Version]:
        """Both versions of a stack; what could not be prepared is not tried again.

        Args:
            store: where environments that are made are kept.

        Raises:
            ConfigurationError: there is no such base.
            PreparationFailed: its environment could not be made.
        """
        from pytest_ldos.campaign.order import Role
        from pytest_ldos.campaign.versions import head_version
        from pytest_ldos.robot.stack.choose import resolve_kind

        kind = resolve_kind(stack)
        if kind not in self._found:
            self._found[kind] = self._find(kind, store, announce)
        base = self._found[kind]
        if isinstance(base, LdosError):
            raise base
        return {Role.BASE: base, Role.HEAD: head_version(self._root)}

    def describe_settings(self, base: Version, scenario: ReadScenario) -> tuple[str, ...]:
        """Notes on settings of the base that are other than head's, with which both are measured."""
        return describe_base_settings(base, Project(self._root, self._folder, self._sources), scenario)

    def _find(self, kind: StackKind, store: Path, announce: Callable[[str], None]) -> Version | LdosError:
        from pytest_ldos.campaign.prefixes import find_prefix
        from pytest_ldos.campaign.prepare import BASES, prepare
        from pytest_ldos.campaign.versions import Revision, find_base
        from pytest_ldos.scenario.words import StackKind

        try:
            if kind is StackKind.ROS2:
                return find_prefix(self.asked, folder=self._folder)
            found = find_base(self.asked, folder=self._folder, root=self._root)
            if isinstance(found, Revision):
                return prepare(found, self._sources.toml.base, store=store / BASES, announce=announce)
        except LdosError as error:
            return error
        return found
