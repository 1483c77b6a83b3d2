"""The runs of a session's scenario tests, and the versions that they measure."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError, NotWritten
from pytest_ldos.campaign.order import Role
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.plugin.ledger import Ledger, describe_shared
from pytest_ldos.plugin.settings import Settings, require_loads
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from pytest_ldos.scenario.settings import Sources, read_toml
from pytest_ldos.scenario.words import KeepTraces, StackKind

if TYPE_CHECKING:
    from pytest_ldos.base.series import Series
    from pytest_ldos.campaign.blocks import Interleaved
    from pytest_ldos.campaign.versions.version import Version
    from pytest_ldos.host.interference import InterferenceMeter
    from pytest_ldos.judge.gate.decide import GateResult
    from pytest_ldos.judge.judging import Screen
    from pytest_ldos.measure.trial.artifacts import ScenarioFolder
    from pytest_ldos.measure.trial.record import TrialSet
    from pytest_ldos.measure.trial.rig import PhaseClock


@dataclass
class ScenarioRun:
    """The run of a scenario test; the next report shows its `notes`, every report its `version_notes`.

    Attributes:
        folder, earlier: of the last trials, and of earlier ones.
        find_base: finds head and a base by a revision.
        screens: suspicious plain runs, by the session that measured them again.
        confirming: the suspicious run being measured again.
        is_unconfirmed: True if a suspicious run could not be measured again.
        surroundings: measures interference since the stack was requested.
        began_ns, ended_ns: Unix time at which the stack was requested, and had ended.
    """

    nodeid: str
    spec: ScenarioSpec
    folder: ScenarioFolder
    earlier: list[ScenarioFolder] = field(default_factory=list)
    versions: Mapping[Role, Version] = field(default_factory=dict)
    find_base: Callable[..., Mapping[Role, Version]] = lambda **_: {}
    announce: Callable[[str], None] = lambda text: None
    screens: dict[str, Screen] = field(default_factory=dict)
    confirming: Screen | None = None
    is_unconfirmed: bool = False
    loads: list[Any] = field(default_factory=list)
    interleaved: list[Interleaved] = field(default_factory=list)
    places: list[tuple[TrialSet, ScenarioFolder]] = field(default_factory=list)
    unjudged: list[TrialSet] = field(default_factory=list)
    judged: list[tuple[TrialSet, GateResult]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    version_notes: tuple[str, ...] = ()
    clock: PhaseClock = field(init=False)
    surroundings: InterferenceMeter = field(init=False)
    began_ns: int = field(default_factory=time.time_ns)
    ended_ns: int = 0

    def __post_init__(self) -> None:
        from pytest_ldos.host.interference import InterferenceMeter
        from pytest_ldos.measure.trial.rig import PhaseClock

        self.clock, self.surroundings = PhaseClock(), InterferenceMeter()

    def begin_trials(self) -> None:
        """Makes a folder for new trials, if the present one has some."""
        from pytest_ldos.measure.trial.artifacts import is_used, new_scenario_folder

        if is_used(self.folder):
            self.earlier.append(self.folder)
            self.folder = new_scenario_folder(self.folder.path.parent, self.spec.name)

    @property
    def trial_sets(self) -> list[TrialSet]:
        return [trials for trials, _ in self.places]

    def add_trials(self, trials: TrialSet) -> None:
        self.places.append((trials, self.folder))
        self.unjudged.append(trials)

    def folder_of(self, trials: TrialSet) -> ScenarioFolder:
        """The folder of trials; the last folder for trials made elsewhere."""
        return next((folder for each, folder in self.places if each is trials), self.folder)

    def series_of(self, trials: TrialSet) -> Mapping[str, Series]:
        """The judged series by metric; extracted if the trials were not judged."""
        from pytest_ldos.measure.trial.record import all_series

        return next((result.head_series for each, result in self.judged if each is trials), {}) or all_series(trials)

    def end(self, keep: KeepTraces) -> None:
        """Records end and durations, and deletes traces that are not worth keeping."""
        from pytest_ldos.measure.trial.artifacts import drop_traces, is_worth_keeping
        from pytest_ldos.measure.trial.rig import write_durations

        self.ended_ns = time.time_ns()
        regressed = any(result.verdict is Verdict.REGRESSED for _, result in self.judged)
        measured = [*self.trial_sets, *(each.base for each in self.interleaved)]
        if not any(is_worth_keeping(each, regressed=regressed, policy=keep) for each in measured):
            for folder in (*self.earlier, self.folder):
                drop_traces(folder)
        if self.trial_sets:
            with suppress(NotWritten):  # only needed for estimates of later runs
                write_durations(self.folder, self.clock.durations, stack=self.trial_sets[0].stack_kind)


_UNSEEN: Final = "so their effect does not show"
_OF_HEAD: Final = f"both were measured with head's, {_UNSEEN}; compare with a stored baseline to see it"
_OF_THE_CHECKOUT: Final = f"it was measured with this checkout's, {_UNSEEN}; measure in a checkout of it to see it"


def describe_settings(version: Version, settings: Settings, item: pytest.Item) -> tuple[str, ...]:
    """A note on settings that differ between versions but were measured alike, with this checkout's.

    Our command line and environment also apply to the other version.
    """
    from pytest_ldos.show.report.compose import setting_differences
    from pytest_ldos.show.report.words import list_differences

    if version.project is None:
        return ()
    ours, unseen = ("this checkout", _OF_THE_CHECKOUT) if settings.value("head") else ("head", _OF_HEAD)
    try:
        mine = _measured_settings(settings.scenario_of(item), settings.root)
        theirs = settings.scenario_of(item, _sources_of(version.project, settings))
        found = list_differences(setting_differences(mine, _measured_settings(theirs, version.project)))
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


def _measured_settings(spec: ScenarioSpec, project: Path) -> dict[str, Any]:
    loads = {load.KIND: vars(load) for load in spec.loads}
    measured = {"goals": spec.goals, "seeds": spec.seeds, "warmup": spec.warmup}
    return _within(project.resolve(), {"stack": dataclasses.asdict(spec.stack), "loads": loads, **measured})


def _within(project: Path, settings: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found[name] = value
        if isinstance(value, Mapping):
            found[name] = _within(project, value)
        elif isinstance(value, str) and Path(value).is_absolute() and Path(value).is_relative_to(project):
            found[name] = str(Path(value).relative_to(project))
    return found


class MeasuredVersions:
    """Head, from ``--ldos-head`` or this checkout, and the base from ``--ldos-base``."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._found: dict[tuple[Role, StackKind, str], Version | LdosError] = {}

    def stack_to_start(self, stack: StackSpec) -> StackSpec:
        """The stack under test; with ``--ldos-build``, `auto` is ROS 2, which must be sourced."""
        from pytest_ldos.robot.stack.choose import demand_ros2

        is_built = self._settings.value("head") and stack.kind is StackKind.ROS2
        return demand_ros2(stack) if self._settings.value("build") or is_built else stack

    def find(self, stack: StackSpec, *, announce: Callable[[str], None], base: str = "") -> Mapping[Role, Version]:
        """Finds head, and the base (by default that in the settings) if there is one.

        If the base is built, head is built as well, so that only sources differ.
        """
        from pytest_ldos.campaign.versions.find import VersionFinder
        from pytest_ldos.campaign.versions.version import head_version

        settings = self._settings
        finder = VersionFinder(
            stack=stack,
            spec=settings.sources.toml.base,
            root=settings.root,
            folder=settings.folder,
            output=settings.output,
            announce=announce,
        )
        named = {role: name for role in Role if (name := str(settings.value(role)))}
        if base:
            named[Role.BASE] = base
        found = {role: self._once(role, stack, partial(finder.find, role, name)) for role, name in named.items()}
        if Role.HEAD not in found:
            like = found.get(Role.BASE)
            is_built = (settings.value("build") and _is_ros2(stack)) or (like is not None and like.packages is not None)
            found[Role.HEAD] = self._once(Role.HEAD, stack, finder.head) if is_built else head_version(settings.root)
        return found

    def describe(self, versions: Mapping[Role, Version], stack: StackSpec, item: pytest.Item) -> tuple[str, ...]:
        """Notes on differences that the measurement does not show, or that explain its result."""
        from pytest_ldos.campaign.versions.build import describe_stale
        from pytest_ldos.campaign.versions.version import describe_distros, describe_packages

        head, base = versions[Role.HEAD], versions.get(Role.BASE)
        notes: list[str] = []
        if head.packages is None and _is_ros2(stack):
            root = self._settings.root
            notes += describe_stale(root, self._settings.sources.toml.base.workspaces(root))
        if base is not None:
            notes += (*describe_packages(base, head), *describe_distros(base, head))
        for role, each in versions.items():
            if self._settings.value(role):
                notes += describe_settings(each, self._settings, item)
        return tuple(notes)

    def _once(self, role: Role, stack: StackSpec, find: Callable[[], Version]) -> Version:
        """Finds a version once; a failed preparation is not tried again."""
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


def _is_ros2(stack: StackSpec) -> bool:
    from pytest_ldos.robot.stack.choose import resolve_kind

    return resolve_kind(stack) is StackKind.ROS2


class RunRecord:
    """The scenario runs of one session; the first one makes their folder."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._versions = MeasuredVersions(settings)
        self.runs: list[ScenarioRun] = []
        self.folder: Path | None = None

    def runs_of(self, nodeid: str) -> list[ScenarioRun]:
        return [run for run in self.runs if run.nodeid == nodeid]

    def new_folder(self, name: str) -> ScenarioFolder:
        from pytest_ldos.measure.trial.artifacts import new_run_folder, new_scenario_folder

        if self.folder is None:
            self.folder = new_run_folder(self._settings.output)
        return new_scenario_folder(self.folder, name)

    def refuse_shared(self, name: str, nodeid: str) -> None:
        """Refuses a test that measures under another's name, including marks added while it runs."""
        for run in self.runs:
            if run.spec.name == name and run.nodeid != nodeid:
                raise ConfigurationError(describe_shared(name, run.nodeid, nodeid))

    @contextmanager
    def open_run(
        self, item: pytest.Item, spec: ScenarioSpec, *, announce: Callable[[str], None]
    ) -> Iterator[ScenarioRun]:
        """Finds the versions that a test measures, and checks the loads' programs in the environment of each.

        Stacks start with the trials. Each long step is announced.
        """
        self.refuse_shared(spec.name, item.nodeid)
        stack = self._versions.stack_to_start(spec.stack)
        spec = dataclasses.replace(spec, stack=stack)
        run = ScenarioRun(item.nodeid, spec, self.new_folder(spec.name))
        self.runs.append(run)
        try:
            run.versions = self._versions.find(stack, announce=announce)
            run.find_base = partial(self._versions.find, stack, announce=announce)
            run.announce = announce
            run.version_notes = self._versions.describe(run.versions, stack, item)
            require_loads(spec.loads, spec)
            yield run
        finally:
            run.end(self._settings.value("traces"))


class SessionParts(NamedTuple):
    settings: Settings
    record: RunRecord
    ledger: Ledger
