"""Computes a calibration from starts of one version, and measures the gate's error rates with it.

Pairs are drawn from the measured starts and judged by the gate itself. If enough starts
remain, the noise for a pair is estimated from the others only (held out).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np

from pytest_ldos.base.errors import CalibrationFailed
from pytest_ldos.base.stats.counts import share_interval
from pytest_ldos.base.text import counted, percent
from pytest_ldos.campaign.noise import Design, Pair, Pool, plant, starts_of, template_of, to_calibration
from pytest_ldos.judge.baseline.key import ENOUGH_RUNS, Calibration
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import GateResult, decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.record import TrialSet, missing_reasons

TRIAL_COUNTS: Final = (8, 10, 15, 20, 30, 40, 60)

_LEAST_STARTS: Final = 3
"""Fewest starts for an estimate of the noise for others."""

SEED: Final = 20


@dataclass(frozen=True)
class Share:
    """Share of draws in which an event occurred, with its exact 95 % interval over draws of the measured conditions."""

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
    """The gate's error rates with some number of trials of each version.

    Attributes:
        alarms: pairs of equal versions with the verdict `regressed`.
        by_failures: alarms due to failed trials only.
        mde: MDE by metric (the smallest relative effect reported with probability 0.8); the median over the pairs.
        held_out: share of pairs judged with noise estimated from other starts.
        modelled: share of pairs with modelled starts, which have more trials than measured.
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
    """Detection rate of a metric's change that is injected in one of two equal versions."""

    design: Design
    metric: str
    trials: int
    effect: float
    found: Share


@dataclass
class Prover:
    """Draws pairs, `draws` for each number of trials, and judges them by a policy with the estimated noise."""

    pool: Pool
    policy: Policy
    draws: int = 200
    seed: int = SEED
    on_decision: Callable[[], None] = lambda: None
    _learned: dict[frozenset[int], Calibration] = field(default_factory=dict)

    def promises(self, design: Design, counts: Sequence[int] = TRIAL_COUNTS) -> Iterator[Promise]:
        """One promise for each number of trials; none with fewer than two starts, which either design needs."""
        if len(self.pool.starts) >= 2:
            yield from (self.promise(design, trials) for trials in counts)

    def promise(self, design: Design, trials: int) -> Promise:
        pairs = list(self._pairs(design, trials, self.draws))
        judged = [self._judge(pair) for pair in pairs]
        regressed = [result for result, _ in judged if result.verdict is Verdict.REGRESSED]
        by_metric = [any(each.verdict is Verdict.REGRESSED for each in result.comparisons) for result in regressed]
        mde: dict[str, list[float]] = {metric.name: [] for metric in self.pool.template.metrics}
        for result, _ in judged:
            for comparison in result.comparisons:
                if comparison.metric in mde:
                    mde[comparison.metric].append(comparison.mde)
        return Promise(
            design=design,
            trials=trials,
            alarms=Share(len(regressed), len(pairs)),
            by_failures=Share(by_metric.count(False), len(pairs)),
            undecided=Share(sum(result.verdict is Verdict.INCONCLUSIVE for result, _ in judged), len(pairs)),
            # The upper median, because values may be infinite.
            mde={name: sorted(values)[len(values) // 2] for name, values in mde.items() if values},
            held_out=float(np.mean([held_out for _, held_out in judged])),
            modelled=float(np.mean([pair.is_modelled for pair in pairs])),
        )

    def plant(self, design: Design, metric: str, *, trials: int, effect: float, draws: int) -> Planted:
        found = 0
        for pair in self._pairs(design, trials, draws):
            result, _ = self._judge(dataclasses.replace(pair, head=plant(pair.head, metric, effect)))
            comparison = result.comparison(metric)
            found += comparison is not None and comparison.verdict is Verdict.REGRESSED
        return Planted(design=design, metric=metric, trials=trials, effect=effect, found=Share(found, draws))

    def _pairs(self, design: Design, trials: int, draws: int) -> Iterator[Pair]:
        rng = np.random.default_rng([self.seed, list(Design).index(design), trials])
        return (self.pool.draw(rng, design, trials) for _ in range(draws))

    def _judge(self, pair: Pair) -> tuple[GateResult, bool]:
        """The verdict, and True if the noise was held out."""
        everything = frozenset(range(len(self.pool.starts)))
        others = everything - pair.used
        held_out = len(others) >= _LEAST_STARTS and not pair.is_modelled
        chosen = others if held_out else everything
        if chosen not in self._learned:
            starts = [self.pool.starts[number] for number in sorted(chosen)]
            self._learned[chosen] = to_calibration(self.pool.template, starts)
        learned = self._learned[chosen]
        policy = dataclasses.replace(self.policy, calibrations={learned.scenario: learned})
        result = decide(pair.head, pair.base, policy)
        self.on_decision()
        return result, held_out


FEW_STARTS: Final = 5
"""Fewest starts for a good estimate of the variance between starts."""


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """Trials of each version required to detect a requested effect, for every reachable metric and by metric.

    They are ``None`` if none of the tried numbers suffices.
    """

    design: Design
    trials: int | None
    by_metric: Mapping[str, int | None]

    @property
    def unreachable(self) -> tuple[str, ...]:
        return tuple(name for name, trials in self.by_metric.items() if trials is None)


@dataclass(frozen=True, kw_only=True)
class CalibrationResult:
    """Result of a calibration; `planted` are changes of each reachable metric with the suggested trials."""

    calibration: Calibration
    effect: float
    promises: tuple[Promise, ...]
    suggestions: tuple[Suggestion, ...]
    planted: tuple[Planted, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Extent of the proof: pairs of equal versions per number of trials, and pairs with a change per metric."""

    effect: float
    policy: Policy
    counts: Sequence[int] = TRIAL_COUNTS
    draws: int = 200
    planted_draws: int = 60
    metrics: int = len(METRICS)
    on_decision: Callable[[], None] = lambda: None

    @property
    def decisions(self) -> int:
        """Largest number of verdicts that the proof takes."""
        return len(Design) * (self.draws * len(self.counts) + self.planted_draws * self.metrics)


def calibrate(runs: Sequence[TrialSet], proof: Proof) -> CalibrationResult:
    """Measures the gate's error rates with the noise of the runs; raises as `learn`."""
    calibration = learn(runs)
    prover = Prover(
        Pool(template_of(runs), starts_of(runs)), proof.policy, draws=proof.draws, on_decision=proof.on_decision
    )
    promises = tuple(each for design in Design for each in prover.promises(design, proof.counts))
    suggestions = tuple(suggest(promises, design, effect=proof.effect) for design in Design)
    planted = tuple(
        prover.plant(each.design, metric, trials=trials, effect=proof.effect, draws=proof.planted_draws)
        for each in suggestions
        for metric, trials in each.by_metric.items()
        if trials is not None
    )
    return CalibrationResult(
        calibration=calibration,
        effect=proof.effect,
        promises=promises,
        suggestions=suggestions,
        planted=planted,
        notes=tuple(_notes(runs, calibration)),
    )


def learn(runs: Sequence[TrialSet]) -> Calibration:
    """The noise of the measured runs; raises `CalibrationFailed` with the reason if it cannot be estimated."""
    starts, trials = starts_of(runs), [trial for run in runs for trial in run.trials]
    if not trials:
        raise CalibrationFailed("nothing was measured", remedy="give it more time: --time-limit")
    if not any(trial.succeeded for trial in trials):
        reason = f"{trials[0].outcome}: {trials[0].message or 'no reason given'}"
        raise CalibrationFailed(
            f"all {len(trials)} trials failed ({reason})", remedy="make the scenario work first: pytest -m baseline"
        )
    if len(starts) < 2:
        raise CalibrationFailed(
            "one start was measured: the difference between starts is unknown",
            remedy="measure at least two, better eight: --blocks 8",
        )
    calibration = to_calibration(template_of(runs), starts)
    if not calibration.metrics:
        raise CalibrationFailed(
            "no metric was measured in two starts, two trials in one of them",
            remedy="measure more trials of each start: --trials 8",
        )
    last = runs[-1]
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return dataclasses.replace(calibration, fingerprint=last.fingerprint, commit=last.commit, made_at=made_at)


def suggest(promises: Sequence[Promise], design: Design, *, effect: float) -> Suggestion:
    mine = [each for each in promises if each.design is design]
    by_metric = {
        name: min((each.trials for each in mine if each.mde.get(name, math.inf) <= effect), default=None)
        for name in dict.fromkeys(name for each in mine for name in each.mde)
    }
    most = max((each for each in by_metric.values() if each is not None), default=None)
    return Suggestion(design=design, trials=most, by_metric=by_metric)


def _notes(runs: Sequence[TrialSet], calibration: Calibration) -> Iterator[str]:
    if calibration.starts < FEW_STARTS:
        yield f"{calibration.starts} starts tell little about how starts differ: measure {FEW_STARTS} or more"
    if len(runs) < ENOUGH_RUNS:
        yield (
            f"{counted(len(runs), 'run')}: for versions measured one after the other, the difference between days is "
            f"assumed, not known; {ENOUGH_RUNS} runs tell it (ldos calibrate, on other days)"
        )
    if failed := [trial for run in runs for trial in run.trials if not trial.succeeded]:
        yield (
            f"{len(failed)} of {calibration.trials} trials failed; equal versions that fail are called regressed "
            f"where a success rate of {percent(runs[0].spec.success_rate, 0)} is expected"
        )
    for metric in template_of(runs).metrics:
        if metric.name not in calibration.metrics:
            reasons = (reason for run in runs for reason in missing_reasons(run, metric).values())
            yield f"{metric.name} is not calibrated: {next(reasons, 'fewer than two starts have it')}"
    for name, noise in calibration.metrics.items():
        if all(math.isclose(sd, 0.0, abs_tol=1e-12) for sd in (noise.trial_sd, noise.run_sd)):
            yield f"{name} never varied: a deviation of 0 is learned"
    for reason in dict.fromkeys(run.incomplete for run in runs if run.incomplete):
        yield f"a start was not finished: {reason}"
