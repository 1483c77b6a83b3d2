"""Made-up histories: commits of which some are slow, fail or do not build, and searches that need no time."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_ldos.base.errors import PreparationFailed
from pytest_ldos.campaign.commit_rounds import Commit, CommitFailed, CommitStore, Records, Side, plan_search
from pytest_ldos.campaign.commit_search import CommitResult, CommitSearch
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.starts import append_start
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.record import MotionTrial, TrialSet
from pytest_ldos.robot.stack.protocol import OURS
from pytest_ldos.scenario.model import ScenarioSpec
from tests.builders.breaking import Watching
from tests.builders.trials import TYPICAL, failed_trial, trial, trial_set

SPEC = ScenarioSpec(name="baseline", trials=4)
WHERE = {"host class": "lab"}


def commit(number: int) -> Commit:
    return Commit(f"{number:012x}", "2026-01-02", f"change {number}")


@dataclass
class MadeUpHistory:
    """Commits whose trials are made up.

    Attributes:
        slow: factor of T1 by commit, from there on.
        fails: commits whose goals fail.
        unbuildable, unstartable: commits that do not build, and whose stack does not start.
        flaky: commits whose first start fails.
        ends: exceptions by the number of the round, from 1.
    """

    commits: int = 8
    slow: Mapping[int, float] = field(default_factory=dict)
    fails: frozenset[int] = frozenset()
    unbuildable: frozenset[int] = frozenset()
    unstartable: frozenset[int] = frozenset()
    flaky: set[int] = field(default_factory=set)
    ends: dict[int, BaseException] = field(default_factory=dict)
    cv: float = 0.02
    prepared: list[int] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)

    def prepare(self, which: Commit) -> Version:
        number = int(which.name, 16)
        self.prepared.append(number)
        if number in self.unbuildable:
            raise PreparationFailed(f"base {which.name} cannot be built: `make` ended with exit code 2")
        return Version(role=Role.BASE, name=which.name, commit=which.name, installation=OURS)

    def measure(self, versions: Mapping[Side, Version], records: Records, number: int) -> Records:
        place = int(versions[Side.COMMIT].commit, 16)
        self.rounds.append(place)
        if len(self.rounds) in self.ends:
            raise self.ends[len(self.rounds)]
        if place in self.unstartable or place in self.flaky:
            self.flaky.discard(place)
            raise CommitFailed(f"{commit(place).name}, block 1: the controller did not start")
        return {side: self._more(side, int(each.commit, 16), records, number) for side, each in versions.items()}

    def _more(self, side: Side, place: int, records: Records, number: int) -> TrialSet:
        trials = [self._trial(side, place, number, index) for index in range(SPEC.trials)]
        return append_start(records.get(side), trial_set(trials, spec=SPEC, commit=commit(place).name))

    def _trial(self, side: Side, place: int, number: int, index: int) -> MotionTrial:
        whole = number * SPEC.trials + index
        if place in self.fails:
            return failed_trial(whole)
        rng = random.Random(f"{side}-{place}-{whole}")
        factor = self.slow[max(since)] if (since := [first for first in self.slow if first <= place]) else 1.0
        planning = TYPICAL["T1"] * factor * rng.lognormvariate(0, self.cv)
        segments = {"latency": round(planning * 1e6), "callback run: /move_group: plan": round(planning * 1e6)}
        made = trial(whole, {**TYPICAL, "T1": planning}, segments_ns={"planning": segments})
        return dataclasses.replace(made, block=number)


def search(
    history: MadeUpHistory,
    folder: Path,
    watching: Watching | None = None,
    *,
    spec: ScenarioSpec = SPEC,
    metric: str = "T1",
    **settings: int,
) -> CommitResult:
    """Runs a search on a made-up history."""
    commits = [commit(number) for number in range(history.commits + 1)]
    return CommitSearch(
        commits=commits,
        plan=plan_search(history.commits, **settings),
        metric=METRICS[metric].description,
        spec=spec,
        where=WHERE,
        prepare=history.prepare,
        measure=history.measure,
        store=CommitStore(folder),
        observer=watching or Watching(),
    ).run()
