"""Trials that a test asks for: of head alone, or of head and base interleaved."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.errors import LdosError
from pytest_ldos.campaign.alone import StoredBase, measure_alone
from pytest_ldos.campaign.blocks import Bench
from pytest_ldos.campaign.interleave import interleave
from pytest_ldos.campaign.order import Role
from pytest_ldos.judge.baseline.lookup import Found
from pytest_ldos.judge.gate.case import fails_more_often
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Screen, judge
from pytest_ldos.measure.metrics.catalogue import Catalogue
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.plugin.judging import grounds_for, why_not_confirmed
from pytest_ldos.plugin.ledger import Ledger
from pytest_ldos.plugin.progress import Progress
from pytest_ldos.plugin.scenario_run import ScenarioRun
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.plugin.watching import TrialWatch
from pytest_ldos.robot.stack.goals import Goal
from pytest_ldos.scenario.model import ScenarioSpec

Goals = Sequence[Goal] | str

_MOST_CONFIRMING: Final = 30
"""Trials of each version that a suspicion may take, unless the scenario may have more."""


@dataclass(frozen=True)
class TrialRequest:
    """The trials that a test asks for: a scenario, its goals, and the metrics to take."""

    spec: ScenarioSpec
    goals: Goals
    catalogue: Catalogue


@dataclass(frozen=True)
class TrialMaker:
    """Makes the trials of one scenario run."""

    settings: Settings
    ledger: Ledger
    run: ScenarioRun

    def make(self, goals: Goals, n: int | None, catalogue: Catalogue) -> TrialSet:
        """Makes trials, and returns head's.

        Args:
            n: number of trials that the test asks for; the command line overrides it.
            catalogue: the metrics to take.
        """
        self.run.begin_trials()
        run, request = self.run, TrialRequest(self._spec_for(goals, n), goals, catalogue)
        with self._watched(request.spec.name) as watch:
            bench = self._bench(request, watch)
            if Role.BASE in run.versions and not run.screens:
                return self._make_interleaved(bench)
            trials = self._make_alone(bench)
        return self._confirmed(trials, request)

    def _spec_for(self, goals: Goals, n: int | None) -> ScenarioSpec:
        """The scenario with the loads that run now, and what the test asks for."""
        spec = dataclasses.replace(self.run.spec, loads=tuple(load.spec for load in self.run.loads))
        if isinstance(goals, str):
            spec = dataclasses.replace(spec, goals=goals)
        if n is not None and "trials" not in self.settings.sources.command_line:
            spec = dataclasses.replace(spec, trials=n)
        return spec

    @contextmanager
    def _watched(self, title: str) -> Iterator[TrialWatch]:
        """Watches trials with the profilers of the settings; writes their files however the trials end."""
        watch = TrialWatch(self.settings.watch_spec, self.run.folder.path, title)
        try:
            yield watch
        finally:
            self.run.notes += watch.write()

    def _bench(self, request: TrialRequest, watch: TrialWatch) -> Bench:
        return Bench(
            spec=request.spec,
            folder=self.run.folder,
            goals=request.goals,
            catalogue=request.catalogue,
            loads=tuple(self.run.loads),
            paths=self.settings.sources.toml.paths,
            observer=Progress(self.settings.config, is_alone=Role.BASE not in self.run.versions),
            watch=watch.of,
            clock=self.run.clock,
        )

    def _make_alone(self, bench: Bench) -> TrialSet:
        """Head's trials; more of them while the comparison with the stored baseline is inconclusive."""
        head = self.run.versions[Role.HEAD]
        return measure_alone(bench, head, size=self.settings.value("block"), find_base=self._stored_base)

    def _stored_base(self, trials: TrialSet) -> StoredBase | None:
        grounds = grounds_for(self.settings, self.ledger, self.run, trials)
        if not isinstance(grounds.base, Found):
            return None
        return StoredBase(len(grounds.base.trials.trials), lambda head: judge(head, grounds).result)

    def _make_interleaved(self, bench: Bench, *, until_s: float = math.inf) -> TrialSet:
        """Head's trials, interleaved with the base's.

        Args:
            until_s: moment of `time.monotonic` from which on no more are added.
        """

        def decide(head: TrialSet, base: TrialSet) -> GateResult:
            found = judge(head, grounds_for(self.settings, self.ledger, self.run, head, base)).result
            return found if time.monotonic() < until_s else dataclasses.replace(found, more_trials_because=())

        made = interleave(bench, self.run.versions, size=self.settings.value("block"), decide=decide)
        self.run.interleaved.append(made)
        return made.head

    def _confirmed(self, trials: TrialSet, request: TrialRequest) -> TrialSet:
        """The trials; or, where they are suspicious, others of head, interleaved with the baseline's commit."""
        grounds = grounds_for(self.settings, self.ledger, self.run, trials)
        if not isinstance(grounds.base, Found):
            return trials
        base, judged = grounds.base.trials, judge(trials, grounds)
        suspicious = [each for each in judged.result.comparisons if each.is_suspicious]
        is_sound = judged.own.verdict is Verdict.PASSED and judged.result.verdict is not Verdict.INVALID
        if not is_sound or not (suspicious or fails_more_often(trials, base)):
            return trials
        names = tuple(each.metric for each in suspicious)
        what = ", ".join(f"{each.metric} ×{each.ratio:.3g}" for each in suspicious) or "failures"
        why_not = why_not_confirmed(self.settings, trials, base) or self._find_base(base.commit)
        if why_not:
            self.run.notes.append(f"suspicious against the stored baseline: {what}; not measured again: {why_not}")
            return trials
        minutes = self.settings.value("confirm")
        said = f"suspicious against the stored baseline: {what}"
        self.run.announce(f"{said}; measuring it interleaved with {base.commit}, for {minutes} min at most")
        self.run.begin_trials()
        until_s = time.monotonic() + 60 * minutes
        most = max(request.spec.max_trials, _MOST_CONFIRMING)
        again = dataclasses.replace(request, spec=dataclasses.replace(request.spec, max_trials=most))
        with self._watched(request.spec.name) as watch:
            made = self._make_interleaved(self._bench(again, watch), until_s=until_s)
        self.run.screens[made.session] = Screen(head=trials, base=base, suspicious=names, known=grounds.policy.known)
        self.run.notes.append(f"{said}; measured again, interleaved with {base.commit}")
        return made

    def _find_base(self, commit: str) -> str:
        """Finds the baseline's version; why there is none, or nothing."""
        try:
            self.run.versions = self.run.find_base(base=commit)
        except LdosError as error:
            return error.message
        return ""
