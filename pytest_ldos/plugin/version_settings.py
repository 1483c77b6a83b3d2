"""Notes on settings of versions that differ from those they are measured with, which hides their effect."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ldos.base.errors import LdosError
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.scenario.settings import Sources, read_toml

if TYPE_CHECKING:
    from pytest_ldos.campaign.versions.version import Version
    from pytest_ldos.scenario.model import ScenarioSpec

_UNSEEN: Final = "so their effect does not show"
_OF_HEAD: Final = f"both were measured with head's, {_UNSEEN}; compare with a stored baseline to see it"
_OF_THE_CHECKOUT: Final = f"it was measured with this checkout's, {_UNSEEN}; measure in a checkout of it to see it"


def describe_settings(version: Version, settings: Settings, item: pytest.Item) -> tuple[str, ...]:
    """Differences that a measurement cannot show, because all versions got the settings of this checkout.

    Args:
        settings: of this checkout; their command line and environment apply to the version, too.
        item: the test that was measured.

    Returns:
        One note, or none where the settings are equal or the version has none of its own.
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
    """Our sources with the settings file of another checkout; one that lies in none is shared by both."""
    if ours.value("config") is None or ours.sources.file is None:
        return dataclasses.replace(ours.sources, toml=read_toml(project))
    file, root = ours.sources.file.resolve(), ours.root.resolve()
    if not file.is_relative_to(root):
        return ours.sources
    return dataclasses.replace(ours.sources, toml=read_toml(project, file.relative_to(root)))


def _differences(ours: ScenarioSpec, root: Path, theirs: ScenarioSpec, project: Path) -> str:
    from pytest_ldos.show.report.version_reports import setting_differences
    from pytest_ldos.show.report.words import list_differences

    return list_differences(setting_differences(_settings(ours, root), _settings(theirs, project)))


def _settings(spec: ScenarioSpec, project: Path) -> dict[str, Any]:
    """Settings of the measurement; paths below the project relative to it."""
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
