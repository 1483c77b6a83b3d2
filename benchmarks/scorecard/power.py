"""Runs in which one thing was planted: how often each rule finds it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from benchmarks.scorecard.bound import fewest_head_trials, power_of_failures, power_of_shift
from benchmarks.scorecard.data_sets import design
from benchmarks.scorecard.data_sets.protocol import DataSet
from benchmarks.scorecard.family import ask
from benchmarks.scorecard.rules.chosen import OTHERS, OURS, OWN
from benchmarks.scorecard.rules.ours import Judged
from benchmarks.scorecard.sample import Batch, Numbers, Side, generator
from pytest_ldos.measure.trial.record import Look

SHIFTS: Final = {"+5%": 1.05, "+10%": 1.10, "+15%": 1.15, "+25%": 1.25, "+50%": 1.5, "+100%": 2.0}
FAILURES: Final = "failures 0→30%"


@dataclass
class Found:
    """Power in one cell: a metric of a scenario of a data set, with one shift.

    Attributes:
        variation: the metric's coefficient of variation, of single trials; the median over runs.
        runs: the same for all rules, but for Otava.
        found: by rule.
        head_trials: that ours spent.
        bound: power of the best test there could be; see `bound`.
        fewest: head trials that it would need at the median.
        series: for Otava, base and head.
    """

    variation: float
    runs: int
    found: dict[str, int]
    head_trials: Counter[int] = field(default_factory=Counter)
    bound: float = float("nan")
    fewest: int = 0
    series: tuple[Numbers, Numbers] | None = None


@dataclass(frozen=True)
class PlantedShift:
    """A piece of work."""

    data: DataSet
    scenario: str
    metric: str
    shift: str
    seed: int
    runs: int
    for_otava: int

    def judge(self) -> Found:
        words = (self.seed, self.data.name, self.scenario, self.metric, self.shift)
        batch = self.data.draw(self.scenario, self.runs, generator(*words))
        variation = _variation(batch.base, self.metric)
        bound = power_of_shift(batch, self.metric, SHIFTS[self.shift])
        fewest = fewest_head_trials(batch, self.metric, SHIFTS[self.shift])
        batch = batch.with_shift(self.metric, SHIFTS[self.shift])
        judged = _judge(batch, self.runs, len(self.data.scenarios))
        base, head = batch.base.passed(self.metric), batch.head.passed(self.metric)
        found = {rule.name: int(ask(rule, base, head, batch).sum()) for rule in OTHERS}
        found |= {name: sum(self.metric in each.regressed for each in runs) for name, runs in judged.items()}
        trials = Counter(each.head_trials for each in judged[OURS.name])
        series = (base[: self.for_otava], head[: self.for_otava])
        return Found(variation, self.runs, found, trials, bound, fewest, series)


BASE_TRIALS_OF_FAILURES: Final = 60
FAILURE_RATE: Final = 0.3


@dataclass(frozen=True)
class PlantedFailures:
    """A piece of work: 30 head trials of which each fails with probability 0.3, against 60 that all succeeded."""

    data: DataSet
    scenario: str
    seed: int
    runs: int

    def judge(self) -> Found:
        rng = generator(self.seed, self.data.name, self.scenario, FAILURES)
        batch = _with_failures(self.data.draw(self.scenario, 2 * self.runs, rng), self.runs, rng)
        judged = _judge(batch, self.runs, len(self.data.scenarios))
        red = {rule.name: np.zeros(self.runs, dtype=np.bool_) for rule in OTHERS}
        for metric in self.data.metrics:
            for rule in OTHERS:
                red[rule.name] |= ask(rule, batch.base.passed(metric), batch.head.passed(metric), batch)
        found = {name: int(flags.sum()) for name, flags in red.items()}
        found |= {name: sum(each.red for each in runs) for name, runs in judged.items()}
        bound = power_of_failures(base_trials=batch.base.trials, head_trials=batch.head.trials, rate=FAILURE_RATE)
        trials = Counter(each.head_trials for each in judged[OURS.name])
        return Found(float("nan"), self.runs, found, trials, bound)


def _judge(batch: Batch, runs: int, scenarios: int) -> dict[str, list[Judged]]:
    """Our results of each run, by rule."""
    return {rule.name: [rule.judge(batch, run, scenarios=scenarios) for run in range(runs)] for rule in OWN}


def _with_failures(batch: Batch, runs: int, rng: np.random.Generator) -> Batch:
    """Two bases make one of 60 trials; the head of the first has failures."""
    base, head = _two_as_one(batch.base, runs), _some(batch.head, runs)
    head = replace(head, failed=rng.random(head.failed.shape) < FAILURE_RATE)
    looks = tuple(Look(head_trials, base.trials) for head_trials in design.HEAD_LOOKS)
    return replace(batch, base=base, head=head, looks=looks, interleaved=False, success_rate=0.0)


def _some(side: Side, runs: int) -> Side:
    first = slice(None, runs)
    return replace(
        side,
        values={name: values[first] for name, values in side.values.items()},
        failed=side.failed[first],
        covariates={name: values[first] for name, values in side.covariates.items()},
    )


def _two_as_one(side: Side, runs: int) -> Side:
    def joined(values: Numbers) -> Numbers:
        return np.concatenate([values[:runs], values[runs:]], axis=1)

    return Side(
        values={name: joined(values) for name, values in side.values.items()},
        failed=np.zeros((runs, 2 * side.trials), dtype=np.bool_),
        blocks=np.concatenate([side.blocks, side.blocks + side.blocks.max() + 1]),
        covariates={name: joined(values) for name, values in side.covariates.items()},
    )


def _variation(side: Side, metric: str) -> float:
    values = side.passed(metric)
    known = values[np.isfinite(values).sum(axis=1) > 1]
    return (
        float(np.median(np.nanstd(known, axis=1, ddof=1) / np.nanmean(known, axis=1))) if len(known) else float("nan")
    )
