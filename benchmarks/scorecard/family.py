"""Runs of unchanged code, judged as a family: red where any metric of any scenario is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from benchmarks.scorecard.data_sets.protocol import DataSet
from benchmarks.scorecard.rules.chosen import OTHERS, OURS, OWN
from benchmarks.scorecard.rules.ours import Judged
from benchmarks.scorecard.rules.protocol import Rule
from benchmarks.scorecard.sample import Batch, Flags, Numbers, generator


@dataclass
class Alarms:
    """Results of a rule in runs without any change.

    Attributes:
        runs, red: of the family.
        comparisons, fired: of single metrics; ours does not count them one by one.
    """

    runs: int = 0
    red: int = 0
    comparisons: int = 0
    fired: int = 0

    def add(self, other: Alarms) -> None:
        self.runs += other.runs
        self.red += other.red
        self.comparisons += other.comparisons
        self.fired += other.fired


@dataclass
class FamilyResult:
    """Results of some runs of one data set.

    Attributes:
        rules: by name.
        verdicts: of ours, of single scenarios.
        head_trials: that ours spent, by scenario and run.
        series: what Otava is to be asked: base and head, shape (runs · metrics, trials), and to which run each belongs.
    """

    rules: dict[str, Alarms] = field(default_factory=dict)
    verdicts: Counter[str] = field(default_factory=Counter)
    head_trials: Counter[int] = field(default_factory=Counter)
    series: list[tuple[Numbers, Numbers, Numbers]] = field(default_factory=list)

    def add(self, other: FamilyResult) -> None:
        for name, alarms in other.rules.items():
            self.rules.setdefault(name, Alarms()).add(alarms)
        self.verdicts += other.verdicts
        self.head_trials += other.head_trials
        self.series += other.series


@dataclass(frozen=True)
class FamilyRuns:
    """A piece of work: some runs of a data set.

    Attributes:
        first: number of the first of them.
        others: in how many of them the other rules are asked.
        for_otava: from how many of them series are kept.
    """

    data: DataSet
    seed: int
    first: int
    runs: int
    others: int
    for_otava: int

    def judge(self) -> FamilyResult:
        result = FamilyResult()
        red = {rule.name: np.zeros(self.others, dtype=np.bool_) for rule in OTHERS}
        red |= {rule.name: np.zeros(self.runs, dtype=np.bool_) for rule in OWN}
        for scenario in self.data.scenarios:
            batch = self.data.draw(scenario, self.runs, generator(self.seed, self.data.name, scenario, self.first))
            for rule in OWN:
                judged = [rule.judge(batch, run, scenarios=len(self.data.scenarios)) for run in range(self.runs)]
                red[rule.name] |= np.array([each.red for each in judged])
                if rule is OURS:
                    _count(judged, result)
            for metric in self.data.metrics if self.others else ():
                self._ask_others(batch, metric, red, result)
        for name, flags in red.items():
            result.rules.setdefault(name, Alarms()).add(Alarms(runs=len(flags), red=int(flags.sum())))
        return result

    def _ask_others(self, batch: Batch, metric: str, red: dict[str, Flags], result: FamilyResult) -> None:
        base, head = (side.passed(metric)[: self.others] for side in (batch.base, batch.head))
        for rule in OTHERS:
            fired = ask(rule, base, head, batch)
            red[rule.name] |= fired
            alarms = result.rules.setdefault(rule.name, Alarms())
            alarms.add(Alarms(comparisons=len(fired), fired=int(fired.sum())))
        runs = np.arange(self.first, self.first + self.for_otava, dtype=np.float64)
        result.series.append((base[: self.for_otava], head[: self.for_otava], runs))


def _count(judged: list[Judged], result: FamilyResult) -> None:
    result.verdicts += Counter(str(each.verdict) for each in judged)
    result.head_trials += Counter(each.head_trials for each in judged)


def ask(rule: Rule, base: Numbers, head: Numbers, batch: Batch) -> Flags:
    """True if a rule fires; it does not if a side has no value."""
    known = np.isfinite(base).any(axis=1) & np.isfinite(head).any(axis=1)
    fired = np.zeros(len(base), dtype=np.bool_)
    if known.any():
        fired[known] = rule.fires(base[known], head[known], batch.base.blocks)
    return fired
