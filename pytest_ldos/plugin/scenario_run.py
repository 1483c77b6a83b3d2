"""The run of one scenario test, from its start to its verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_ldos.base.errors import NotWritten
from pytest_ldos.measure.trial.phases import PhaseClock

if TYPE_CHECKING:
    from pytest_ldos.base.series import Series
    from pytest_ldos.campaign.blocks import Interleaved
    from pytest_ldos.campaign.order import Role
    from pytest_ldos.campaign.versions.version import Version
    from pytest_ldos.host.interference import InterferenceMeter
    from pytest_ldos.judge.gate.decide import GateResult
    from pytest_ldos.judge.judging import Screen
    from pytest_ldos.measure.trial.artifacts import ScenarioFolder
    from pytest_ldos.measure.trial.record import TrialSet
    from pytest_ldos.scenario.model import ScenarioSpec
    from pytest_ldos.scenario.words import KeepTraces


def _meter() -> InterferenceMeter:
    from pytest_ldos.host.interference import InterferenceMeter

    return InterferenceMeter()


@dataclass
class ScenarioRun:
    """The run of a scenario test.

    Attributes:
        folder: of the last trials.
        earlier: folders of earlier trials.
        versions: measured versions: head, and the base if there is one.
        find_base: finds head and a base by a revision.
        announce: called with each long step.
        screens: suspicious plain runs, by the session that measured them again.
        confirming: the suspicious run being measured again.
        is_unconfirmed: True if a suspicious run could not be measured again.
        environments: of the measured versions, made by sourcing them; ``None`` for ours.
        interleaved: interleaved measurements, in order.
        places: trials and the folder of each.
        unjudged: trials that were not judged.
        judged: trials and their results.
        notes: notes of the profilers for the next report.
        version_notes: notes on the measured versions and their settings, for every report.
        clock: adds up the time of each phase.
        surroundings: measures interference since its stack was requested.
        began_ns, ended_ns: Unix time at which its stack was requested, and had ended.
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
    environments: Sequence[Mapping[str, str] | None] = (None,)
    loads: list[Any] = field(default_factory=list)
    interleaved: list[Interleaved] = field(default_factory=list)
    places: list[tuple[TrialSet, ScenarioFolder]] = field(default_factory=list)
    unjudged: list[TrialSet] = field(default_factory=list)
    judged: list[tuple[TrialSet, GateResult]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    version_notes: tuple[str, ...] = ()
    clock: PhaseClock = field(default_factory=PhaseClock)
    surroundings: InterferenceMeter = field(default_factory=_meter)
    began_ns: int = field(default_factory=time.time_ns)
    ended_ns: int = 0

    def take_notes(self) -> list[str]:
        """Returns and clears the notes, so that each is in one report only."""
        taken, self.notes = self.notes, []
        return taken

    def begin_trials(self) -> None:
        """Creates a folder for new trials, if the present one has some of this test."""
        from pytest_ldos.measure.trial.artifacts import is_used, new_scenario_folder

        if is_used(self.folder):
            self.earlier.append(self.folder)
            self.folder = new_scenario_folder(self.folder.path.parent, self.spec.name)

    @property
    def trial_sets(self) -> list[TrialSet]:
        """All trials so far."""
        return [trials for trials, _ in self.places]

    def add_trials(self, trials: TrialSet) -> None:
        """Adds trials of the present folder, which are not yet judged."""
        self.places.append((trials, self.folder))
        self.unjudged.append(trials)

    def folder_of(self, trials: TrialSet) -> ScenarioFolder:
        """The folder of trials; the last folder for trials made elsewhere."""
        return next((folder for each, folder in self.places if each is trials), self.folder)

    def interleaved_with(self, trials: TrialSet) -> Interleaved | None:
        """The interleaved measurement whose head is the given trials; ``None`` if they have no base."""
        return next((each for each in self.interleaved if each.head.session == trials.session), None)

    def series_of(self, trials: TrialSet) -> Mapping[str, Series]:
        """The series on which the verdict on trials is based, by metric; extracted if they were not judged."""
        from pytest_ldos.measure.trial.record import all_series

        return next((result.head_series for each, result in self.judged if each is trials), {}) or all_series(trials)

    def end(self, keep: KeepTraces) -> None:
        """Records the end and the duration, and deletes the trace unless `keep` is set."""
        from pytest_ldos.judge.gate.verdict import Verdict
        from pytest_ldos.measure.trial.artifacts import drop_traces, is_worth_keeping
        from pytest_ldos.measure.trial.durations import write_durations

        self.ended_ns = time.time_ns()
        regressed = any(result.verdict is Verdict.REGRESSED for _, result in self.judged)
        measured = [*self.trial_sets, *(each.base for each in self.interleaved)]
        if not any(is_worth_keeping(each, regressed=regressed, policy=keep) for each in measured):
            for folder in (*self.earlier, self.folder):
                drop_traces(folder)
        if self.trial_sets:
            with suppress(NotWritten):  # only needed for estimates of later runs
                write_durations(self.folder, self.clock.durations, stack=self.trial_sets[0].stack_kind)
