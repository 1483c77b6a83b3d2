"""What breaks first, and what breaks most: the stages of a motion, level by level, from what trials recorded.

A stage has left its calm range at a level where its median is beyond `FACTOR` times the calm one and a rank-sum
test says that this is no chance (`ERROR` over all stages and levels together, if starts of the stack are alike: trials
count as independent, so that `FACTOR` is what keeps starts that differ a little from being told).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_ldos.stats.rank_sum import Sample, rank_sum_p
from pytest_ldos.trial.record import Trial, TrialSet

FACTOR: Final = 1.5
ERROR: Final = 0.05
STATE_FEEDBACK: Final = "state feedback"

TELLING: Final = 0.75
"""How often a broken trial must have more of a stage than a sound one for the stage to explain anything."""

BETWEEN_TRIALS: Final = "between trials"
"""Outcome of a motion that is no trial, and failed."""

_FEWEST: Final = 3
_MOST_MESSAGES: Final = 3


@dataclass(frozen=True)
class Stage:
    """A part of a motion that can be what breaks.

    Attributes:
        quantity: what is measured of it, for people.
        metrics: that are of this stage.
        read: its number in a trial, milliseconds; ``None`` where there is none.
    """

    name: str
    quantity: str
    metrics: tuple[str, ...]
    read: Callable[[Trial], float | None]


def _metric(name: str) -> Callable[[Trial], float | None]:
    def read(trial: Trial) -> float | None:
        measured = trial.measurements.get(name)
        return None if measured is None else measured.number

    return read


def _segments(kind: str) -> Callable[[Trial], float | None]:
    def read(trial: Trial) -> float | None:
        path = trial.segments_ns.get(STATE_FEEDBACK, {})
        found = [duration for segment, duration in path.items() if segment.partition(":")[0] == kind]
        return sum(found) / 1e6 if found else None

    return read


# Waiting for a CPU is told apart only where the kernel's scheduler was recorded.
STAGES: Final = (
    Stage("transport", "joint states on their way, median", (), _segments("transport")),
    Stage("executor queue", "joint states waiting for their callback, median", (), _segments("executor wait")),
    Stage("CPU", "threads of the state feedback waiting for a CPU, median", (), _segments("CPU wait")),
    Stage("planning", "T1", ("T1",), _metric("T1")),
    Stage("control loop", "T3p99", ("T3", "T3p99"), _metric("T3p99")),
    Stage("simulation step", "T5p99", ("T5", "T5p99"), _metric("T5p99")),
)


@dataclass(frozen=True)
class StageAtLevel:
    """A stage at one level.

    Attributes:
        median: milliseconds.
        ratio: to the calm median.
        p_value: of so large values by chance, one-sided.
        has_left: whether that is beyond its calm range.
    """

    level: float
    median: float
    ratio: float
    p_value: float
    has_left: bool


@dataclass(frozen=True)
class StageReport:
    """A stage from the calm level to the harshest.

    Attributes:
        calm: its median at the calm level, milliseconds.
        first_left: the first level at which it had left its calm range; ``None`` if it never did.
        at_threshold: of the calmest level that breaks, or the harshest that was measured.
        separation: probability that it is larger in a trial that broke than in one that did not, of the trials at
            both ends of the interval; ``None`` where there are not both.
        is_criterion: whether it is what was asked about.
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
    """How trials failed at the level that breaks: outcome, what was said of it most often, how many."""

    outcome: str
    message: str
    count: int


@dataclass(frozen=True)
class Cause:
    """What breaks.

    Attributes:
        level: the one that is explained: the calmest that breaks, or the harshest that was measured.
        stages: those that left their calm range first come first, the farther the earlier.
        blamed: the stage that explains most of it; ``None`` where none does.
        failures: at that level, the most frequent first.
        failed, trials: at that level.
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
    """What the records of a search say of why it breaks.

    Args:
        levels: from the calm one to the harshest.
        threshold: the level to explain.
        bracket: levels whose broken and sound trials are told apart.
        criterion_metric: that was asked about; empty for success.
        ended_early: what was said at the threshold where the way home failed; each counts as a trial.
    """
    told = [
        each for stage in STAGES if (each := _report(stage, levels, threshold, bracket, criterion_metric, is_broken))
    ]
    places = list(levels)
    order = sorted(told, key=lambda each: _rank(each, places))
    at_threshold = levels[threshold]
    failed = [trial for trial in at_threshold.trials if not trial.succeeded]
    return Cause(
        level=threshold,
        stages=tuple(order),
        blamed=_blamed(order),
        failures=(*_failures(failed), *_failures_on_the_way(ended_early)),
        failed=len(failed) + len(ended_early),
        trials=len(at_threshold.trials) + len(ended_early),
    )


def _rank(report: StageReport, places: Sequence[float]) -> tuple[int, float]:
    """The earliest first; of those that left at one level, the farthest."""
    if report.first_left is None:
        return len(places), -(report.at_threshold.ratio if report.at_threshold else 0.0)
    at_first = next(each for each in report.levels if each.level == report.first_left)
    return places.index(report.first_left), -at_first.ratio


def _blamed(order: Sequence[StageReport]) -> StageReport | None:
    """Of the stages that are out of range at the threshold, the one that tells broken trials from sound ones best.

    One that is as long in sound trials explains nothing, however much longer than at the calm level it is.
    """
    out = [each for each in order if each.at_threshold is not None and each.at_threshold.has_left]
    candidates = [each for each in out if each.separation is None or each.separation >= TELLING]
    others = [each for each in candidates if not each.is_criterion]
    return max(others or candidates, key=_weight, default=None)


def _weight(report: StageReport) -> tuple[float, float]:
    assert report.at_threshold is not None
    return round(report.separation or 0.0, 1), report.at_threshold.ratio


def _report(
    stage: Stage,
    levels: Mapping[float, TrialSet],
    threshold: float,
    bracket: Sequence[float],
    criterion_metric: str,
    is_broken: Callable[[Trial], bool | None],
) -> StageReport | None:
    """A stage over all levels; ``None`` where the calm level has no number of it."""
    calm_level = next(iter(levels))
    calm = _numbers(stage, levels[calm_level].trials)
    if len(calm) < _FEWEST or not np.median(calm) > 0:
        return None
    error = ERROR / (len(STAGES) * max(1, len(levels) - 1))
    harsher = {level: _numbers(stage, trials.trials) for level, trials in levels.items() if level != calm_level}
    told = tuple(_at_level(level, found, calm, error) for level, found in harsher.items() if len(found) >= _FEWEST)
    return StageReport(
        stage=stage.name,
        quantity=stage.quantity,
        calm=float(np.median(calm)),
        levels=told,
        first_left=next((each.level for each in told if each.has_left), None),
        at_threshold=next((each for each in told if each.level == threshold), None),
        separation=_separation(stage, [trial for level in bracket for trial in levels[level].trials], is_broken),
        is_criterion=criterion_metric in stage.metrics,
    )


def _at_level(level: float, found: Sample, calm: Sample, error: float) -> StageAtLevel:
    ratio = float(np.median(found) / np.median(calm))
    p_value = rank_sum_p(found, calm)
    return StageAtLevel(level, float(np.median(found)), ratio, p_value, ratio >= FACTOR and p_value <= error)


def _separation(stage: Stage, trials: Sequence[Trial], is_broken: Callable[[Trial], bool | None]) -> float | None:
    """Mann and Whitney's statistic over its largest value: 0.5 where the stage says nothing of what breaks."""
    broken = _numbers(stage, [trial for trial in trials if is_broken(trial)])
    sound = _numbers(stage, [trial for trial in trials if is_broken(trial) is False])
    if not len(broken) or not len(sound):
        return None
    larger = np.count_nonzero(broken[:, None] > sound[None, :])
    equal = np.count_nonzero(broken[:, None] == sound[None, :])
    return float((larger + equal / 2) / (len(broken) * len(sound)))


def _numbers(stage: Stage, trials: Sequence[Trial]) -> Sample:
    return np.array([value for trial in trials if (value := stage.read(trial)) is not None], dtype=np.float64)


def _failures(failed: Sequence[Trial]) -> tuple[FailureCount, ...]:
    by_outcome = Counter(trial.outcome.value for trial in failed)
    return tuple(
        FailureCount(outcome, _said_most(failed, outcome), count)
        for outcome, count in by_outcome.most_common(_MOST_MESSAGES)
    )


def _said_most(failed: Sequence[Trial], outcome: str) -> str:
    messages = Counter((trial.message.splitlines() or [""])[0] for trial in failed if trial.outcome.value == outcome)
    return messages.most_common(1)[0][0]


def _failures_on_the_way(reasons: Sequence[str]) -> tuple[FailureCount, ...]:
    if not reasons:
        return ()
    said = Counter((reason.splitlines() or [""])[0] for reason in reasons)
    return (FailureCount(BETWEEN_TRIALS, said.most_common(1)[0][0], len(reasons)),)
