"""Finds the stages of a motion that break first and most, level by level, from recorded trials.

A stage is out of its calm range at a level if its median there exceeds `FACTOR` times the calm median and a rank-sum
test rejects chance. `ERROR` holds over all stages and levels together if stack starts are alike. The test treats
trials as independent; `FACTOR` therefore keeps small differences between starts from being reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_ldos.base.ros2 import STATE_FEEDBACK
from pytest_ldos.base.stats.rank_tests import Sample, rank_sum_p
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.extract import kind_of
from pytest_ldos.measure.metrics.model import MeasuredMetric
from pytest_ldos.measure.trial.record import MotionTrial, Trial, TrialSet
from pytest_ldos.trace.flow.critical import SegmentKind

FACTOR: Final = 1.5
ERROR: Final = 0.05

TELLING: Final = 0.75
"""Smallest probability of larger values in broken than in unbroken trials, for a stage to be blamed."""

_FEWEST: Final = 3
_MOST_MESSAGES: Final = 3


@dataclass(frozen=True)
class Stage:
    """A part of a motion that may break; `read` returns its value in a trial, in milliseconds."""

    name: str
    quantity: str
    metrics: tuple[str, ...]
    read: Callable[[Trial], float | None]


def _segments(name: str, quantity: str, kind: SegmentKind) -> Stage:
    def read(trial: Trial) -> float | None:
        path = trial.segments_ns.get(STATE_FEEDBACK, {}) if isinstance(trial, MotionTrial) else {}
        found = [duration for segment, duration in path.items() if kind_of(segment) is kind]
        return sum(found) / 1e6 if found else None

    return Stage(name, f"{quantity}, median", (), read)


def _of_metric(stage: str, metric: MeasuredMetric) -> Stage:
    def read(trial: Trial) -> float | None:
        measured = trial.measurements.get(metric.name)
        return None if measured is None else measured.number

    return Stage(stage, metric.name, (metric.name, metric.refines), read)


# Waiting for a CPU is a separate segment only if the kernel's scheduler was recorded.
STAGES: Final = (
    _segments("transport", "joint states on their way", SegmentKind.TRANSPORT),
    _segments("executor queue", "joint states waiting for their callback", SegmentKind.EXECUTOR_WAIT),
    _segments("CPU", "threads of the state feedback waiting for a CPU", SegmentKind.CPU_WAIT),
    *(_of_metric(each.stage, each) for each in METRICS.values() if each.stage),
)


@dataclass(frozen=True)
class StageAtLevel:
    """Median (milliseconds), its ratio to the calm median, and one-sided p-value of a stage at a level."""

    level: float
    median: float
    ratio: float
    p_value: float
    has_left: bool


@dataclass(frozen=True)
class StageReport:
    """A stage from the calm level to the harshest.

    Attributes:
        calm: its median at the calm level, in milliseconds.
        first_left: the first level at which it is out of its calm range, if any.
        at_threshold: the stage at the calmest level that breaks, or at the harshest that was measured.
        separation: probability that its value is larger in a broken trial than in an unbroken one, over the trials at
            both ends of the interval; ``None`` unless there are trials of both kinds.
    """

    stage: str
    quantity: str
    calm: float
    levels: tuple[StageAtLevel, ...]
    first_left: float | None
    at_threshold: StageAtLevel | None
    separation: float | None
    is_criterion: bool


@dataclass(frozen=True)
class FailureCount:
    """Number of failed trials with one outcome at the level that breaks, with their most frequent message."""

    outcome: str
    message: str
    count: int


@dataclass(frozen=True)
class Cause:
    """Explanation of a breaking point.

    Attributes:
        level: the calmest that breaks, or the harshest that was measured.
        stages: in the order in which they left their calm range; at equal level, the largest ratio first.
        blamed: the stage that explains most of it, if any.
        failures: at that level, the most frequent first.
        failed, trials: numbers at that level.
    """

    level: float
    stages: tuple[StageReport, ...]
    blamed: StageReport | None
    failures: tuple[FailureCount, ...]
    failed: int
    trials: int


def find_cause(
    levels: Mapping[float, TrialSet],
    *,
    threshold: float,
    bracket: Sequence[float],
    criterion_metric: str,
    is_broken: Callable[[Trial], bool | None],
    ended_early: Sequence[str] = (),
) -> Cause:
    """Explains, from the records of a search, why a level breaks.

    Args:
        levels: from the calm one to the harshest.
        bracket: levels whose broken and unbroken trials are compared.
        ended_early: messages of failed resets at the threshold; each counts as a trial.
    """
    reports = [_report(stage, levels, threshold, bracket, criterion_metric, is_broken) for stage in STAGES]
    places = list(levels)

    def rank(report: StageReport) -> tuple[int, float]:
        if report.first_left is None:
            return len(places), -(report.at_threshold.ratio if report.at_threshold else 0.0)
        at_first = next(each for each in report.levels if each.level == report.first_left)
        return places.index(report.first_left), -at_first.ratio

    order = sorted((each for each in reports if each is not None), key=rank)
    at_threshold = levels[threshold]
    failed = [trial for trial in at_threshold.trials if not trial.succeeded]
    return Cause(
        level=threshold,
        stages=tuple(order),
        blamed=_blamed(order),
        failures=_failures(failed, ended_early),
        failed=len(failed) + len(ended_early),
        trials=len(at_threshold.trials) + len(ended_early),
    )


def _blamed(order: Sequence[StageReport]) -> StageReport | None:
    """The stage out of range at the threshold that best separates broken from unbroken trials.

    A stage that is equally long in unbroken trials is no explanation, even if it exceeds the calm level.
    """
    out = [each for each in order if each.at_threshold is not None and each.at_threshold.has_left]
    candidates = [each for each in out if each.separation is None or each.separation >= TELLING]
    others = [each for each in candidates if not each.is_criterion]

    def weigh(report: StageReport) -> tuple[float, float]:
        assert report.at_threshold is not None
        return round(report.separation or 0.0, 1), report.at_threshold.ratio

    return max(others or candidates, key=weigh, default=None)


def _report(
    stage: Stage,
    levels: Mapping[float, TrialSet],
    threshold: float,
    bracket: Sequence[float],
    criterion_metric: str,
    is_broken: Callable[[Trial], bool | None],
) -> StageReport | None:
    """A stage over all levels; ``None`` if the calm level has too few values of it, or a median of 0."""
    (_, calm_trials), *harsher = levels.items()
    calm = _numbers(stage, calm_trials.trials)
    if len(calm) < _FEWEST or not np.median(calm) > 0:
        return None
    error = ERROR / (len(STAGES) * max(1, len(harsher)))
    measured = []
    for level, trials in harsher:
        found = _numbers(stage, trials.trials)
        if len(found) >= _FEWEST:
            median, ratio = float(np.median(found)), float(np.median(found) / np.median(calm))
            p_value = rank_sum_p(found, calm)
            measured.append(StageAtLevel(level, median, ratio, p_value, ratio >= FACTOR and p_value <= error))
    return StageReport(
        stage=stage.name,
        quantity=stage.quantity,
        calm=float(np.median(calm)),
        levels=tuple(measured),
        first_left=next((each.level for each in measured if each.has_left), None),
        at_threshold=next((each for each in measured if each.level == threshold), None),
        separation=_separation(stage, [trial for level in bracket for trial in levels[level].trials], is_broken),
        is_criterion=bool(criterion_metric) and criterion_metric in stage.metrics,
    )


def _separation(stage: Stage, trials: Sequence[Trial], is_broken: Callable[[Trial], bool | None]) -> float | None:
    """Mann–Whitney statistic divided by its maximum: 0.5 if the stage is unrelated to breaking."""
    broken = _numbers(stage, [trial for trial in trials if is_broken(trial)])
    sound = _numbers(stage, [trial for trial in trials if is_broken(trial) is False])
    if not len(broken) or not len(sound):
        return None
    larger = np.count_nonzero(broken[:, None] > sound[None, :])
    equal = np.count_nonzero(broken[:, None] == sound[None, :])
    return float((larger + equal / 2) / (len(broken) * len(sound)))


def _numbers(stage: Stage, trials: Sequence[Trial]) -> Sample:
    return np.array([value for trial in trials if (value := stage.read(trial)) is not None], dtype=np.float64)


def _failures(failed: Sequence[Trial], ended_early: Sequence[str]) -> tuple[FailureCount, ...]:
    messages: dict[str, list[str]] = {}
    for trial in failed:
        messages.setdefault(trial.outcome.value, []).append(trial.message)
    most = sorted(messages, key=lambda outcome: -len(messages[outcome]))[:_MOST_MESSAGES]
    found = [(outcome, messages[outcome]) for outcome in most]
    if ended_early:
        found.append(("between trials", list(ended_early)))
    return tuple(
        FailureCount(
            outcome, Counter((text.splitlines() or [""])[0] for text in texts).most_common(1)[0][0], len(texts)
        )
        for outcome, texts in found
    )
