"""The versions that a run measures, and notes on differing settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.scenario.settings import Sources, read_toml

if TYPE_CHECKING:
    from pytest_ldos.campaign.order import Role
    from pytest_ldos.campaign.versions.find import VersionFinder
    from pytest_ldos.campaign.versions.version import Version
    from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
    from pytest_ldos.scenario.words import StackKind


_UNSEEN: Final = "so their effect does not show"
_OF_HEAD: Final = f"both were measured with head's, {_UNSEEN}; compare with a stored baseline to see it"
_OF_THE_CHECKOUT: Final = f"it was measured with this checkout's, {_UNSEEN}; measure in a checkout of it to see it"


def describe_settings(version: Version, settings: Settings, item: pytest.Item) -> tuple[str, ...]:
    """Notes on differences that a measurement cannot show, because all versions have this checkout's settings.

    Args:
        settings: of this checkout; their command line and environment also apply to the version.
        item: the measured test.

    Returns:
        One note, or none if the settings are equal or the version has none of its own.
    """
    if version.project is None:
        return ()
    ours, unseen = ("this checkout", _OF_THE_CHECKOUT) if settings.value("head") else ("head", _OF_HEAD)
    try:
        mine = settings.scenario_of(item)
        theirs = settings.scenario_of(item, _sources_of(version.project, settings))
        found = _differences(mine, settings.root, theirs, version.project)
    except LdosError as error:
        return (f"the settings of {version.name} could not be compared with {ours}'s ({error.message}): {unseen}",)
    return (f"settings differ between {version.role} and {ours} ({found}): {unseen}",) if found else ()


def _sources_of(project: Path, ours: Settings) -> Sources:
    """Our sources with the settings file of another checkout; a file outside of checkouts is shared by both."""
    if ours.value("config") is None or ours.sources.file is None:
        return dataclasses.replace(ours.sources, toml=read_toml(project))
    file, root = ours.sources.file.resolve(), ours.root.resolve()
    if not file.is_relative_to(root):
        return ours.sources
    return dataclasses.replace(ours.sources, toml=read_toml(project, file.relative_to(root)))


def _differences(ours: ScenarioSpec, root: Path, theirs: ScenarioSpec, project: Path) -> str:
    from pytest_ldos.show.report.part_reports import setting_differences
    from pytest_ldos.show.report.words import list_differences

    return list_differences(setting_differences(_settings(ours, root), _settings(theirs, project)))


def _settings(spec: ScenarioSpec, project: Path) -> dict[str, Any]:
    """Settings of the measurement, with paths relative to the project."""
    loads = {load.KIND: vars(load) for load in spec.loads}
    measured = {"goals": spec.goals, "seeds": spec.seeds, "warmup": spec.warmup}
    return _within(project.resolve(), {"stack": dataclasses.asdict(spec.stack), "loads": loads, **measured})


def _within(project: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_relative(project, settings.items()))


def _relative(project: Path, settings: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    for name, value in settings:
        if isinstance(value, Mapping):
            yield name, _within(project, value)
        elif isinstance(value, str) and Path(value).is_absolute() and Path(value).is_relative_to(project):
            yield name, str(Path(value).relative_to(project))
        else:
            yield name, value


Announce = Callable[[str], None]


class MeasuredVersions:
    """Head, from ``--ldos-head`` or this checkout, and the base from ``--ldos-base``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._found: dict[tuple[Role, StackKind, str], Version | LdosError] = {}

    def stack_to_start(self, stack: StackSpec) -> StackSpec:
        """The stack under test; with ``--ldos-build``, `auto` is always ROS 2.

        Raises:
            Unavailable: head's workspace must be built, and no ROS 2 is sourced.
        """
        from pytest_ldos.robot.stack.choose import demand_ros2
        from pytest_ldos.scenario.words import StackKind

        is_built = self._settings.value("head") and stack.kind is StackKind.ROS2
        return demand_ros2(stack) if self._settings.value("build") or is_built else stack

    def find(self, stack: StackSpec, *, announce: Announce, base: str = "") -> Mapping[Role, Version]:
        """Finds head, and the base if there is one. If the base is built, head is built as well, so that only sources
        differ.

        Args:
            base: revision to use instead of that in the settings.

        Raises:
            ConfigurationError: there is no such version.
            PreparationFailed: one of them could not be prepared, or cannot be started.
        """
        from pytest_ldos.campaign.order import Role

        finder = self._finder(stack, announce)
        named = {role: name for role in Role if (name := self._named(role))}
        if base:
            named[Role.BASE] = base
        found = {role: self._once(role, stack, partial(finder.find, role, name)) for role, name in named.items()}
        if Role.HEAD not in found:
            found[Role.HEAD] = self._head_here(stack, finder, like=found.get(Role.BASE))
        return found

    def _named(self, role: Role) -> str:
        """The version in the settings; empty without one."""
        return str(self._settings.value(role))

    def _head_here(self, stack: StackSpec, finder: VersionFinder, *, like: Version | None) -> Version:
        """The checkout: built if requested or if the base is built, and otherwise as installed.

        Args:
            like: the base.
        """
        from pytest_ldos.campaign.order import Role
        from pytest_ldos.campaign.versions.version import head_version

        is_asked = self._settings.value("build") and _is_ros2(stack)
        if is_asked or (like is not None and like.packages is not None):
            return self._once(Role.HEAD, stack, finder.built.head)
        return head_version(self._settings.root)

    def describe(self, versions: Mapping[Role, Version], stack: StackSpec, item: pytest.Item) -> tuple[str, ...]:
        """Notes on differences that the measurement does not show, or that explain its result."""
        from pytest_ldos.campaign.order import Role
        from pytest_ldos.campaign.versions.find import describe_distros, describe_packages

        head, base = versions[Role.HEAD], versions.get(Role.BASE)
        of_both = () if base is None else (*describe_packages(base, head), *describe_distros(base, head))
        others = [each for role, each in versions.items() if self._named(role)]
        of_settings = [note for each in others for note in describe_settings(each, self._settings, item)]
        return (*self._describe_stale(head, stack), *of_both, *of_settings)

    def _describe_stale(self, head: Version, stack: StackSpec) -> tuple[str, ...]:
        """A note if head's workspace was not built and its sources are newer than its installed files."""
        from pytest_ldos.campaign.versions.find import describe_stale

        if head.packages is not None or not _is_ros2(stack):
            return ()
        root = self._settings.root
        return describe_stale(root, self._settings.sources.toml.base.workspaces(root))

    def _once(self, role: Role, stack: StackSpec, find: Callable[[], Version]) -> Version:
        """A version, found only once; a failed preparation is not tried again."""
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
