"""Measures how the gate treats equal versions on this host, and which changes it would detect.

All results come from the gate itself: pairs are drawn from the measured starts, and judged.
If enough starts remain, a pair is judged by noise learned from the others alone, so that no
start is used both to learn and to test.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from pytest_ldos.base.stats.counts import share_interval
from pytest_ldos.campaign.noise import to_calibration
from pytest_ldos.campaign.resample import Design, Pair, Pool, plant
from pytest_ldos.judge.baseline.calibration import Calibration
from pytest_ldos.judge.gate.decide import GateResult, decide
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.model import Metric

TRIAL_COUNTS: Final = (8, 10, 15, 20, 30, 40, 60)

_LEAST_STARTS: Final = 3
"""Fewest starts from which noise is learned to judge others."""

SEED: Final = 20


@dataclass(frozen=True)
class Share:
    """Share of draws in which something happened.

    Attributes:
        low, high: exact 95 % interval over the draws; conditions that were not measured are not in the draws.
    """

    count: int
    draws: int

    @property
    def value(self) -> float:
        return self.count / self.draws if self.draws else 0.0

    @property
    def low(self) -> float:
        return share_interval(self.count, self.draws)[0]

    @property
    def high(self) -> float:
        return share_interval(self.count, self.draws)[1]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Behaviour of the gate with some number of trials of each version.

    Attributes:
        trials: number of trials of each version.
        alarms: pairs of equal versions that were called regressed.
        by_failures: those without a regressed metric, because of failed trials alone.
        undecided: pairs with an inconclusive verdict.
        mde: minimum detectable effect by metric: the smallest relative effect that the gate would
            have reported with probability 0.8; the median over the pairs.
        held_out: share of pairs judged by noise learned from other starts.
        modelled: share of pairs with modelled starts, which have more trials than were measured.
    """

    design: Design
    trials: int
    alarms: Share
    by_failures: Share
    undecided: Share
    mde: Mapping[str, float]
    held_out: float
    modelled: float


@dataclass(frozen=True, kw_only=True)
class Planted:
    """Detection rate of a change of a metric, planted in one of two equal versions."""

    design: Design
    metric: str
    trials: int
    effect: float
    found: Share


@dataclass
class Prover:
    """Draws pairs and judges them.

    Attributes:
        policy: policy of the gate, except for the noise, which is learned here.
        draws: number of pairs for each number of trials.
    """

    pool: Pool
    policy: Policy
    draws: int = 200
    seed: int = SEED
    on_decision: Callable[[], None] = lambda: None
    _learned: dict[frozenset[int], Calibration] = field(default_factory=dict)

    def promises(self, design: Design, counts: Sequence[int] = TRIAL_COUNTS) -> Iterator[Promise]:
        """One promise for each number of trials that can be drawn."""
        for trials in counts:
            if self.can_draw:
                yield self.promise(design, trials)

    @property
    def can_draw(self) -> bool:
        """True if there are enough starts for a pair of either design: two."""
        return len(self.pool.starts) >= 2

    def promise(self, design: Design, trials: int) -> Promise:
        """Measures how the gate behaves with some number of trials."""
        pairs = [(pair, *self._judge(pair)) for pair in self._pairs(design, trials)]
        results = [result for _, result, _ in pairs]
        return Promise(
            design=design,
            trials=trials,
            alarms=Share(sum(each.verdict is Verdict.REGRESSED for each in results), len(results)),
            by_failures=Share(sum(_is_by_failures(each) for each in results), len(results)),
            undecided=Share(sum(each.verdict is Verdict.INCONCLUSIVE for each in results), len(results)),
            mde=_mde_of(results, self.pool.template.metrics),
            held_out=float(np.mean([held_out for _, _, held_out in pairs])),
            modelled=float(np.mean([pair.is_modelled for pair, _, _ in pairs])),
        )

    def plant(self, design: Design, metric: str, *, trials: int, effect: float, draws: int) -> Planted:
        """Measures how often a change of some size is found."""
        found = 0
        for pair in self._pairs(design, trials, draws):
            result, _ = self._judge(dataclasses.replace(pair, head=plant(pair.head, metric, effect)))
            comparison = result.comparison(metric)
            found += comparison is not None and comparison.verdict is Verdict.REGRESSED
        return Planted(design=design, metric=metric, trials=trials, effect=effect, found=Share(found, draws))

    def _pairs(self, design: Design, trials: int, draws: int | None = None) -> Iterator[Pair]:
        rng = np.random.default_rng([self.seed, list(Design).index(design), trials])
        for _ in range(self.draws if draws is None else draws):
            yield self.pool.draw(rng, design, trials)

    def _judge(self, pair: Pair) -> tuple[GateResult, bool]:
        """The verdict, and True if it was judged by noise learned from other starts."""
        others = frozenset(range(len(self.pool.starts))) - pair.used
        held_out = len(others) >= _LEAST_STARTS and not pair.is_modelled
        learned = self._learn(others if held_out else frozenset(range(len(self.pool.starts))))
        policy = dataclasses.replace(self.policy, calibrations={learned.scenario: learned})
        result = decide(pair.head, pair.base, policy)
        self.on_decision()
        return result, held_out

    def _learn(self, numbers: frozenset[int]) -> Calibration:
        if numbers not in self._learned:
            starts = [self.pool.starts[number] for number in sorted(numbers)]
            self._learned[numbers] = to_calibration(self.pool.template, starts)
        return self._learned[numbers]


def fewest_trials(promises: Sequence[Promise], *, design: Design, metric: str, effect: float) -> int | None:
    """The smallest number of trials with which a change of this size would be reported; ``None`` if none suffices."""
    enough = [each.trials for each in promises if each.design is design and each.mde.get(metric, math.inf) <= effect]
    return min(enough, default=None)


def _is_by_failures(result: GateResult) -> bool:
    by_metric = any(each.verdict is Verdict.REGRESSED for each in result.comparisons)
    return result.verdict is Verdict.REGRESSED and not by_metric


def _mde_of(results: Sequence[GateResult], metrics: Sequence[Metric]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for result in results:
        for comparison in result.comparisons:
            found.setdefault(comparison.metric, []).append(comparison.mde)
    return {metric.name: _median(found[metric.name]) for metric in metrics if metric.name in found}


def _median(values: Sequence[float]) -> float:
    """The upper median, so that infinite values do no harm."""
    return sorted(values)[len(values) // 2]
