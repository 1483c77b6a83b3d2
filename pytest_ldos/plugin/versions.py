"""The versions that a run interleaves, found and prepared once for all its scenarios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.plugin.base_settings import describe_base_settings
from pytest_ldos.plugin.settings import Settings

if TYPE_CHECKING:
    from pytest_ldos.campaign.order import Role
    from pytest_ldos.campaign.versions import Version
    from pytest_ldos.scenario.model import StackSpec
    from pytest_ldos.scenario.words import StackKind


class InterleavedVersions:
    """Head and the base that ``--ldos-base`` names.

    Attributes:
        base_asked: the base as it was named; empty where head is measured alone.
    """

    def __init__(self, settings: Settings) -> None:
        self.base_asked = str(settings.value("base"))
        self._settings = settings
        self._bases: dict[StackKind, Version | LdosError] = {}

    def find(self, stack: StackSpec, *, announce: Callable[[str], None]) -> Mapping[Role, Version]:
        """Both versions of a stack; a base that could not be prepared is not tried again.

        Raises:
            ConfigurationError: there is no such base.
            PreparationFailed: its environment could not be made.
        """
        from pytest_ldos.campaign.order import Role
        from pytest_ldos.campaign.versions import head_version
        from pytest_ldos.robot.stack.choose import resolve_kind

        kind = resolve_kind(stack)
        if kind not in self._bases:
            self._bases[kind] = self._find_base(kind, announce)
        base = self._bases[kind]
        if isinstance(base, LdosError):
            raise base
        return {Role.BASE: base, Role.HEAD: head_version(self._settings.root)}

    def describe_settings(self, versions: Mapping[Role, Version], item: pytest.Item) -> tuple[str, ...]:
        """Notes on settings of the base that differ from head's, with which both are measured."""
        from pytest_ldos.campaign.order import Role

        return describe_base_settings(versions[Role.BASE], self._settings, item)

    def _find_base(self, kind: StackKind, announce: Callable[[str], None]) -> Version | LdosError:
        from pytest_ldos.campaign.kept_bases import BASES
        from pytest_ldos.campaign.prefixes import find_prefix
        from pytest_ldos.campaign.prepare import prepare
        from pytest_ldos.campaign.versions import Revision, find_base
        from pytest_ldos.scenario.words import StackKind

        settings, asked = self._settings, self.base_asked
        try:
            if kind is StackKind.ROS2:
                return find_prefix(asked, folder=settings.folder)
            found = find_base(asked, folder=settings.folder, root=settings.root)
            if isinstance(found, Revision):
                return prepare(found, settings.sources.toml.base, store=settings.output / BASES, announce=announce)
        except LdosError as error:
            return error
        return found
