"""Turns starts of one version into a calibration, and measures what the gate can promise with it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pytest_ldos.base.errors import CalibrationFailed
from pytest_ldos.base.units import counted
from pytest_ldos.campaign.noise import to_calibration
from pytest_ldos.campaign.promise import TRIAL_COUNTS, Planted, Promise, Prover, fewest_trials
from pytest_ldos.campaign.resample import Design, Pool
from pytest_ldos.campaign.starts import starts_of, template_of
from pytest_ldos.judge.baseline.calibration import ENOUGH_RUNS, Calibration, MetricNoise
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.series_of import missing_reasons

FEW_STARTS: Final = 5
"""Fewest starts for a good estimate of how much starts differ."""


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """Number of trials required to detect a requested effect.

    Attributes:
        trials: trials of each version that suffice for every reachable metric; ``None`` if no metric is reachable
            with the numbers that were tried.
        by_metric: the same for each metric by itself.
    """

    design: Design
    trials: int | None
    by_metric: Mapping[str, int | None]

    @property
    def unreachable(self) -> tuple[str, ...]:
        """Metrics for which none of the numbers of trials that were tried suffices."""
        return tuple(name for name, trials in self.by_metric.items() if trials is None)


@dataclass(frozen=True, kw_only=True)
class CalibrationResult:
    """Result of a calibration.

    Attributes:
        effect: the requested effect: the relative change to be detected.
        planted: detection of that change, planted in each reachable metric, with the suggested trials.
        notes: remarks on how the calibration was made.
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
    """Learns the noise of the measured runs, and measures what the gate promises with it.

    Raises:
        CalibrationFailed: nothing can be learned from them; the message says why.
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
