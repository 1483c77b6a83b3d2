"""Where the base's project has other settings than head's: both are measured with head's, which hides what they do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_ldos.base.errors import LdosError
from pytest_ldos.scenario.settings import Sources, read_toml

if TYPE_CHECKING:
    from pytest_ldos.campaign.versions import Version
    from pytest_ldos.scenario.model import ScenarioSpec

ReadScenario = Callable[[Sources], "ScenarioSpec"]
"""The scenario of a test, as these sources have it."""

_UNSEEN: Final = (
    "both were measured with head's, so what others change could not have been seen; "
    "compare with a stored baseline to see it"
)


@dataclass(frozen=True)
class Project:
    """Head's.

    Attributes:
        root: its folder.
        folder: where paths on the command line start.
        sources: its settings.
    """

    root: Path
    folder: Path
    sources: Sources

    @property
    def settings_file(self) -> Path | None:
        """The one that was named, if any."""
        named = self.sources.value("config")
        if named is None:
            return None
        start = self.folder if "config" in self.sources.command_line else self.root
        return Path(start / named).resolve()


def describe_base_settings(base: Version, head: Project, scenario: ReadScenario) -> tuple[str, ...]:
    """What a comparison in turns could not have seen, because both versions got head's settings.

    Args:
        head: its command line and environment count for the base, too.
        scenario: reads the scenario that was measured.

    Returns:
        One note, or none where the settings are equal or the base has none of its own.
    """
    if base.project is None:
        return ()
    try:
        ours, theirs = scenario(head.sources), scenario(_sources_of(base.project, head))
        found = _differences(ours, head.root, theirs, base.project)
    except LdosError as error:
        return (f"the settings of {base.name} could not be compared with head's ({error.message}): {_UNSEEN}",)
    return (f"settings differ between base and head ({found}): {_UNSEEN}",) if found else ()


def _sources_of(project: Path, head: Project) -> Sources:
    """Head's sources with the settings file of another checkout; one that lies in none is shared by both."""
    file, root = head.settings_file, head.root.resolve()
    if file is None:
        return dataclasses.replace(head.sources, toml=read_toml(project))
    if not file.is_relative_to(root):
        return head.sources
    return dataclasses.replace(head.sources, toml=read_toml(project, file.relative_to(root)))


def _differences(head: ScenarioSpec, root: Path, base: ScenarioSpec, project: Path) -> str:
    from pytest_ldos.show.report.version_reports import setting_differences
    from pytest_ldos.show.report.words import list_differences

    return list_differences(setting_differences(_settings(head, root), _settings(base, project)))


def _settings(spec: ScenarioSpec, project: Path) -> dict[str, Any]:
    """What both versions are measured with; files of the project as they are named in it."""
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
