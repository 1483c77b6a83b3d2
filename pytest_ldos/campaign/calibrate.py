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
from pytest_ldos.base.text import counted
from pytest_ldos.campaign.noise import Design, Pair, Pool, plant, starts_of, template_of, to_calibration
from pytest_ldos.judge.baseline.calibration import ENOUGH_RUNS, Calibration, MetricNoise
from pytest_ldos.judge.gate.decide import GateResult, decide
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet, missing_reasons

TRIAL_COUNTS: Final = (8, 10, 15, 20, 30, 40, 60)

_LEAST_STARTS: Final = 3
"""Fewest starts for an estimate of the noise for others."""

SEED: Final = 20


@dataclass(frozen=True)
class Share:
    """Share of draws in which an event occurred.

    Attributes:
        low, high: exact 95 % interval over the draws of the measured conditions.
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
    """The gate's error rates with some number of trials of each version.

    Attributes:
        trials: number of trials of each version.
        alarms: pairs of equal versions with the verdict `regressed`.
        by_failures: alarms due to failed trials only.
        undecided: pairs with an inconclusive verdict.
        mde: minimum detectable effect by metric: the smallest relative effect that the gate would
            have reported with probability 0.8; the median over the pairs.
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
    """Draws pairs and judges them.

    Attributes:
        policy: policy of the gate, except for the noise.
        draws: number of pairs per number of trials.
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
        """True if there are two starts, enough for a pair of either design."""
        return len(self.pool.starts) >= 2

    def promise(self, design: Design, trials: int) -> Promise:
        """Measures the gate's error rates with a number of trials."""
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
        """Measures the detection rate of a change."""
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
        """The verdict, and True if the noise was held out."""
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
    """The upper median, which supports infinite values."""
    return sorted(values)[len(values) // 2]


FEW_STARTS: Final = 5
"""Fewest starts for a good estimate of the variance between starts."""


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """Number of trials required to detect a requested effect.

    Attributes:
        trials: trials of each version that suffice for every reachable metric; ``None`` if no metric is reachable
            with the tried numbers.
        by_metric: the same for each metric by itself.
    """

    design: Design
    trials: int | None
    by_metric: Mapping[str, int | None]

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Metrics for which none of the tried numbers of trials suffices."""
        return tuple(name for name, trials in self.by_metric.items() if trials is None)


@dataclass(frozen=True, kw_only=True)
class CalibrationResult:
    """Result of a calibration.

    Attributes:
        effect: the requested effect: the relative change to be detected.
        planted: detection of that change in each reachable metric with the suggested trials.
        notes: remarks on the calibration.
    """

    calibration: Calibration
    effect: float
    promises: tuple[Promise, ...]
    suggestions: tuple[Suggestion, ...]
    planted: tuple[Planted, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Extent of the proof.

    Attributes:
        draws: pairs of equal versions for each number of trials.
        planted_draws: pairs with a change in one version, for each metric.
        metrics: number of metrics that are measured.
        on_decision: called after each verdict.
    """

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
    """Estimates the noise of the measured runs, and measures the gate's error rates with it.

    Raises:
        CalibrationFailed: the noise cannot be estimated; the message has the reason.
    """
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
        notes=_notes(runs, calibration),
    )


def learn(runs: Sequence[TrialSet]) -> Calibration:
    """Estimates the noise of the measured runs.

    Raises:
        CalibrationFailed: see `calibrate`.
    """
    starts = starts_of(runs)
    _refuse_what_says_nothing(runs, len(starts))
    calibration = to_calibration(template_of(runs), starts)
    if not calibration.metrics:
        raise CalibrationFailed(
            "no metric was measured in two starts, two trials in one of them",
            remedy="measure more trials of each start: --trials 8",
        )
    last = runs[-1]
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    return dataclasses.replace(calibration, fingerprint=last.fingerprint, commit=last.commit, made_at=made_at)


def _refuse_what_says_nothing(runs: Sequence[TrialSet], starts: int) -> None:
    trials = [trial for run in runs for trial in run.trials]
    if not trials:
        raise CalibrationFailed("nothing was measured", remedy="give it more time: --time-limit")
    if not any(trial.succeeded for trial in trials):
        reason = f"{trials[0].outcome}: {trials[0].message or 'no reason given'}"
        raise CalibrationFailed(
            f"all {len(trials)} trials failed ({reason})", remedy="make the scenario work first: pytest -m baseline"
        )
    if starts < 2:
        raise CalibrationFailed(
            "one start was measured: the difference between starts is unknown",
            remedy="measure at least two, better eight: --blocks 8",
        )


def suggest(promises: Sequence[Promise], design: Design, *, effect: float) -> Suggestion:
    """Suggests the number of trials for the requested effect."""
    metrics = dict.fromkeys(name for each in promises if each.design is design for name in each.mde)
    by_metric = {name: fewest_trials(promises, design=design, metric=name, effect=effect) for name in metrics}
    return Suggestion(
        design=design,
        trials=max((each for each in by_metric.values() if each is not None), default=None),
        by_metric=by_metric,
    )


def _notes(runs: Sequence[TrialSet], calibration: Calibration) -> tuple[str, ...]:
    notes = []
    if calibration.starts < FEW_STARTS:
        notes.append(f"{calibration.starts} starts tell little about how starts differ: measure {FEW_STARTS} or more")
    if len(runs) < ENOUGH_RUNS:
        notes.append(
            f"{counted(len(runs), 'run')}: for versions measured one after the other, the difference between days is "
            f"assumed, not known; {ENOUGH_RUNS} runs tell it (ldos calibrate, on other days)"
        )
    failed = [trial for run in runs for trial in run.trials if not trial.succeeded]
    if failed:
        notes.append(
            f"{len(failed)} of {calibration.trials} trials failed; equal versions that fail are called regressed "
            f"where a success rate of {100 * runs[0].spec.success_rate:.0f} % is expected"
        )
    known = calibration.metrics
    metrics = template_of(runs).metrics
    notes += [f"{each.name} is not calibrated: {_why_absent(each, runs)}" for each in metrics if each.name not in known]
    notes += [f"{name} never varied: a deviation of 0 is learned" for name, each in known.items() if _is_still(each)]
    incomplete = dict.fromkeys(run.incomplete for run in runs if run.incomplete)
    return (*notes, *(f"a start was not finished: {reason}" for reason in incomplete))


def _is_still(noise: MetricNoise) -> bool:
    return math.isclose(noise.trial_sd, 0.0, abs_tol=1e-12) and math.isclose(noise.run_sd, 0.0, abs_tol=1e-12)


def _why_absent(metric: Metric, runs: Sequence[TrialSet]) -> str:
    for run in runs:
        for reason in missing_reasons(run, metric).values():
            return reason
    return "fewer than two starts have it"
