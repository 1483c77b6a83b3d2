"""Trials that a test asks for: of head alone, or of head and base interleaved."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pytest_ldos.campaign.alone import StoredBase, measure_alone
from pytest_ldos.campaign.blocks import Bench
from pytest_ldos.campaign.interleave import interleave
from pytest_ldos.campaign.order import Role
from pytest_ldos.judge.baseline.lookup import Found
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.judging import judge
from pytest_ldos.measure.metrics.catalogue import Catalogue
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.plugin.judging import grounds_for
from pytest_ldos.plugin.ledger import Ledger
from pytest_ldos.plugin.progress import Progress
from pytest_ldos.plugin.scenario_run import ScenarioRun
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.plugin.watching import TrialWatch
from pytest_ldos.robot.stack.goals import Goal
from pytest_ldos.scenario.model import ScenarioSpec

Goals = Sequence[Goal] | str


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
            return self._make_interleaved(bench) if Role.BASE in run.versions else self._make_alone(bench)

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

    def _make_interleaved(self, bench: Bench) -> TrialSet:
        """Head's trials, interleaved with the base's."""
        made = interleave(
            bench,
            self.run.versions,
            size=self.settings.value("block"),
            decide=self._decide,
        )
        self.run.interleaved.append(made)
        return made.head

    def _decide(self, head: TrialSet, base: TrialSet) -> GateResult:
        return judge(head, grounds_for(self.settings, self.ledger, self.run, head, base)).result
