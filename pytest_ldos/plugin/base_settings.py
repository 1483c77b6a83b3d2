"""Notes on settings of the base that differ from head's: both are measured with head's, which hides their effect."""

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

_UNSEEN: Final = (
    "both were measured with head's, so their effect does not show; compare with a stored baseline to see it"
)


def describe_base_settings(base: Version, head: Settings, item: pytest.Item) -> tuple[str, ...]:
    """Differences that an interleaved comparison cannot show, because both versions got head's settings.

    Args:
        head: head's settings; its command line and environment apply to the base, too.
        item: the test that was measured.

    Returns:
        One note, or none where the settings are equal or the base has none of its own.
    """
    if base.project is None:
        return ()
    try:
        ours, theirs = (head.scenario_of(item, each) for each in (head.sources, _sources_of(base.project, head)))
        found = _differences(ours, head.root, theirs, base.project)
    except LdosError as error:
        return (f"the settings of {base.name} could not be compared with head's ({error.message}): {_UNSEEN}",)
    return (f"settings differ between base and head ({found}): {_UNSEEN}",) if found else ()


def _sources_of(project: Path, head: Settings) -> Sources:
    """Head's sources with the settings file of another checkout; one that lies in none is shared by both."""
    file, root = _settings_file(head), head.root.resolve()
    if file is None:
        return dataclasses.replace(head.sources, toml=read_toml(project))
    if not file.is_relative_to(root):
        return head.sources
    return dataclasses.replace(head.sources, toml=read_toml(project, file.relative_to(root)))


def _settings_file(settings: Settings) -> Path | None:
    """The settings file that was named, if any."""
    named = settings.value("config")
    if named is None:
        return None
    start = settings.folder if "config" in settings.sources.command_line else settings.root
    return Path(start / named).resolve()


def _differences(head: ScenarioSpec, root: Path, base: ScenarioSpec, project: Path) -> str:
    from pytest_ldos.show.report.version_reports import setting_differences
    from pytest_ldos.show.report.words import list_differences

    return list_differences(setting_differences(_settings(head, root), _settings(base, project)))


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
