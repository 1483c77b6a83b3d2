"""A search for a breaking point: criterion, plan and numeric result.

Criteria: with ``success<0.5``, a failed trial is broken, and a level is broken if fewer than half of its trials would
succeed. With ``T3p99>3x``, a trial is broken if it failed, or if its metric is beyond three times the median of the
calm end, and a level is broken if more than half of its trials would be, i.e. if its median is beyond this limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

import numpy as np

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown
from pytest_ldos.base.files import copied
from pytest_ldos.base.series import Better, Invalid, Missing
from pytest_ldos.base.stats.counts import LogisticCurve, estimate_correlation, fit_logistic
from pytest_ldos.base.stats.several_tests import BoundaryTest
from pytest_ldos.base.text import format_quantity
from pytest_ldos.campaign.bisection import Bisection, Finding, LevelRecord, LevelState, SearchPlan
from pytest_ldos.campaign.breaking_cause import Cause, find_cause
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import Trial, TrialSet

_FORM: Final = re.compile(r"\s*(?P<what>\w+)\s*(?P<side>[<>])\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|x|×)?\s*")
_SUCCESS: Final = "success"


@dataclass(frozen=True)
class SuccessBelow:
    """Broken if the probability of success is below a level."""

    level: float
    metric_name: str = ""
    unit: str = ""

    @property
    def boundary(self) -> float:
        """Share of broken trials beyond which a level is broken."""
        return 1 - self.level

    def describe(self) -> str:
        return f"fewer than {100 * self.level:g} % of trials succeed"

    def describe_limit(self, limit: float | None) -> str:
        return ""

    def limit(self, calm: TrialSet | None) -> None: ...

    def median(self, trials: TrialSet) -> None: ...

    def is_broken(self, trial: Trial, limit: float | None) -> bool | None:
        return not trial.succeeded

    def why_unvalued(self, trial: Trial) -> str:
        return ""


@dataclass(frozen=True)
class MetricBeyond:
    """Broken if a metric's median is beyond a multiple of its median at the calm end."""

    metric: Metric
    factor: float
    boundary: ClassVar[float] = 0.5
    """A median is beyond the limit if more than half of the values are."""

    @property
    def metric_name(self) -> str:
        return self.metric.name

    @property
    def unit(self) -> str:
        return self.metric.unit

    def describe(self) -> str:
        side = "below" if self.metric.better is Better.HIGHER else "beyond"
        return f"the median of {self.metric.name} is {side} {self.factor:g} × its calm one"

    def describe_limit(self, limit: float | None) -> str:
        if limit is None:
            return ""
        shown = format_quantity(limit, self.metric.unit)
        return f"{shown}, {self.factor:g} × the median of {format_quantity(limit / self.factor, self.metric.unit)}"

    def limit(self, calm: TrialSet | None) -> float | None:
        calm_median = None if calm is None else self.median(calm)
        return None if calm_median is None else calm_median * self.factor

    def median(self, trials: TrialSet) -> float | None:
        measured = (trial.measurements.get(self.metric.name) for trial in trials.trials if trial.succeeded)
        found = [each.number for each in measured if each is not None and each.number is not None]
        return float(np.median(found)) if found else None

    def is_broken(self, trial: Trial, limit: float | None) -> bool | None:
        """True if the trial failed or is beyond the limit; ``None`` if that is unknown."""
        if not trial.succeeded:
            return True
        measured = trial.measurements.get(self.metric.name)
        value = None if measured is None else measured.number
        if value is None or limit is None:
            return None
        return value < limit if self.metric.better is Better.HIGHER else value > limit

    def why_unvalued(self, trial: Trial) -> str:
        """Reason why a successful trial has no value of the metric; empty if it has one, or failed."""
        measured = trial.measurements.get(self.metric.name)
        if not trial.succeeded or (measured is not None and measured.number is not None):
            return ""
        value = None if measured is None else measured.value
        return value.reason if isinstance(value, Missing | Invalid) else "it was not taken"


Criterion = SuccessBelow | MetricBeyond


def parse_criterion(text: str, metrics: dict[str, Metric]) -> Criterion:
    """Parses the value of ``--until``; raises `ConfigurationError`, with the nearest match of an unknown metric."""
    if (match := _FORM.fullmatch(text)) is None:
        remedy = "write it as success<0.5, success<50% or T3p99>3x"
        raise ConfigurationError(f"--until {text!r} says no criterion", remedy=remedy)
    what, side, number, unit = match["what"], match["side"], float(match["number"]), match["unit"] or ""
    is_multiple = unit in {"x", "×"}
    refuse_unknown([what], [_SUCCESS, *metrics], "metric in --until:")
    if what == _SUCCESS:
        level = number / 100 if unit == "%" else number
        if side != "<" or is_multiple or not 0 < level < 1:
            raise ConfigurationError(
                f"--until {text!r}: a success rate breaks below a level between 0 and 1",
                remedy="write it as success<0.5",
            )
        return SuccessBelow(level)
    metric = metrics[what]
    worse = "<" if metric.better is Better.HIGHER else ">"
    example = f"{metric.name}{worse}{'0.5' if metric.better is Better.HIGHER else '3'}x"
    is_worse = 0 < number < 1 if metric.better is Better.HIGHER else number > 1
    if side != worse or not is_multiple or not is_worse:
        raise ConfigurationError(
            f"--until {text!r}: {metric.name} breaks beyond a multiple of its calm median",
            remedy=f"write it as {example}",
        )
    return MetricBeyond(metric, number)


@dataclass(frozen=True, kw_only=True)
class BreakingPlan:
    address: str
    search: SearchPlan
    criterion: Criterion
    time_limit_s: float | None = None


LEVEL_CONFIDENCE: Final = 0.95
"""Confidence of the displayed intervals of levels; no decision depends on them."""

_MUCH_MORE: Final = 2.0
_FEWEST_STARTS: Final = 6


class EstimateBy(StrEnum):
    FIT = "logistic curve through all trials"
    MIDDLE = "middle of the interval"


@dataclass(frozen=True)
class LevelSummary:
    """A visited level.

    Attributes:
        low, high: interval of the probability that a trial breaks, valid at any time (`LEVEL_CONFIDENCE`).
        unvalued: number of successful trials without a value of the criterion's metric, which do not count.
        median: of the criterion's metric; ``None`` for success rates, or without a value.
        mishaps: reasons for excluded starts.
    """

    level: float
    standing: LevelState
    trials: int
    broken: int
    unvalued: int
    starts: int
    low: float
    high: float
    median: float | None
    mishaps: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BreakingResult:
    """Result of a search."""

    plan: BreakingPlan
    finding: Finding
    holds: float | None  # `holds` and `breaks`: levels between which the threshold lies, as far as they were shown
    breaks: float | None
    estimate: float | None
    estimate_by: EstimateBy | None
    ceiling: LevelSummary | None  # the calmest level that could not be measured, if nothing was shown to break
    reached: float | None  # level that the load reached there, if known
    levels: tuple[LevelSummary, ...]  # from the calm end on
    curve: LogisticCurve | None  # probability of breaking over the place of a level (0 the calm end, 1 the harsh one)
    trials: int
    starts: int
    limit: str
    stopped: str  # reason of an early end or of an interval wider than requested; empty otherwise
    is_finished: bool
    notes: tuple[str, ...]
    cause: Cause | None
    template: TrialSet | None


def conclude(
    plan: BreakingPlan,
    bisection: Bisection,
    sets: Mapping[float, TrialSet],
    ended_early: Mapping[float, Sequence[str]],
    *,
    stopped: str,
) -> BreakingResult:
    """Summarises a search at its end.

    Args:
        sets: trials of each level, from the calm end on.
        ended_early: messages of failed motions that are not trials, by level.
    """
    scale = plan.search.scale
    holds, breaks, ceiling = bisection.holds, bisection.breaks, bisection.ceiling
    curve, records = None, bisection.records.values()
    if bisection.finding is Finding.BREAKS:  # levels on both sides of the threshold were tested
        tested = [each for each in records if each.trials]
        places = [scale.place(each.level) for each in tested]
        curve = fit_logistic(places, [each.broken for each in tested], [each.trials for each in tested])
    estimate, estimate_by = _estimate(bisection, curve)
    return BreakingResult(
        plan=plan,
        finding=bisection.finding,
        holds=None if holds is None else holds.level,
        breaks=None if breaks is None else breaks.level,
        estimate=estimate,
        estimate_by=estimate_by,
        ceiling=None if ceiling is None else _summarize(plan, ceiling, sets),
        reached=None if ceiling is None else next((each.achieved for each in ceiling.batches if each.achieved), None),
        levels=tuple(
            _summarize(plan, each, sets) for each in sorted(records, key=lambda each: scale.place(each.level))
        ),
        curve=curve,
        trials=bisection.trials,
        starts=bisection.starts,
        limit=plan.criterion.describe_limit(plan.criterion.limit(sets.get(scale.calm))),
        stopped=stopped or _why_ended(bisection),
        is_finished=not stopped,
        notes=tuple(_notes(plan, bisection)),
        cause=_cause(plan, bisection, sets, ended_early),
        template=next(iter(sets.values()), None),
    )


def _summarize(plan: BreakingPlan, record: LevelRecord, sets: Mapping[float, TrialSet]) -> LevelSummary:
    test = BoundaryTest(plan.search.boundary, 1 - LEVEL_CONFIDENCE, plan.search.test.exponent)
    low, high = test.interval(record.broken, record.trials)
    trials = sets.get(record.level)
    mishaps = [f"{each.exclusion}: {each.reason}" for each in record.exclusions]
    if record.standing is LevelState.UNVALUED:
        reasons = (plan.criterion.why_unvalued(each) for each in (trials.trials if trials is not None else ()))
        why = next((each for each in reasons if each), "it was not taken")
        mishaps.append(
            f"it is not judged: {record.unvalued} of {record.succeeded} trials that succeeded have no "
            f"{plan.criterion.metric_name} ({why})"
        )
    return copied(
        LevelSummary,
        record,
        starts=len(record.batches),
        low=low,
        high=high,
        median=plan.criterion.median(trials) if trials is not None else None,
        mishaps=tuple(mishaps),
    )


def _estimate(bisection: Bisection, curve: LogisticCurve | None) -> tuple[float | None, EstimateBy | None]:
    """The fit, clamped to the interval, if a level has broken and unbroken trials; else the interval's middle."""
    holds, breaks, scale = bisection.holds, bisection.breaks, bisection.plan.scale
    if holds is None or breaks is None or curve is None:
        return None, None
    low, high = scale.place(holds.level), scale.place(breaks.level)
    if not any(0 < each.broken < each.trials for each in bisection.records.values()):
        return scale.level((low + high) / 2), EstimateBy.MIDDLE
    return scale.level(min(high, max(low, curve.place_of(bisection.plan.boundary)))), EstimateBy.FIT


def _why_ended(bisection: Bisection) -> str:
    """Reason why the interval is wider than requested; empty if it is not."""
    holds, breaks = bisection.holds, bisection.breaks
    if holds is None or breaks is None or bisection.plan.scale.is_near(holds.level, breaks.level):
        return ""
    if bisection.is_spent:
        return f"{bisection.plan.max_trials} trials were not enough to narrow it further: --max-trials"
    blocked = [each for each in bisection.records.values() if each.is_blocked]
    if any(each.standing is not LevelState.UNDECIDED for each in blocked):
        return "levels between could not be measured"
    return f"levels between stayed inconclusive after {bisection.plan.patience} trials each: the change is gradual"


def _notes(plan: BreakingPlan, bisection: Bisection) -> list[str]:
    notes = []
    if left_out := {each.level: each.unvalued for each in bisection.records.values() if each.unvalued}:
        few = ", ".join(f"{count} at {level:g}" for level, count in sorted(left_out.items()))
        what = f"trials that succeeded but have no {plan.criterion.metric_name}"
        notes.append(f"{what}, left out: {sum(left_out.values())} ({few})")
    if bisection.contradictions and bisection.breaks:
        held = ", ".join(f"{each.level:g}" for each in bisection.contradictions)
        notes.append(
            f"harsher is not always worse here: {held} holds though {bisection.breaks.level:g} breaks; "
            "the interval is of the first crossing that was found, and there are others"
        )
    mixed = [each.batches for each in bisection.records.values() if 0 < each.broken < each.trials]
    groups = [[(start.broken, start.trials) for start in starts if start.trials] for starts in mixed]
    correlation = estimate_correlation(groups)
    many = sum(map(len, groups)) >= _FEWEST_STARTS
    if correlation is not None and many and correlation > _MUCH_MORE * plan.search.correlation:
        notes.append(
            f"starts of the stack differ more than supposed (correlation {correlation:.2f} between trials of one, "
            f"supposed {plan.search.correlation:.2f}): the interval covers less often than stated; "
            "--trials-per-start 1 supposes nothing"
        )
    return notes


def _cause(
    plan: BreakingPlan, bisection: Bisection, sets: Mapping[float, TrialSet], ended_early: Mapping[float, Sequence[str]]
) -> Cause | None:
    """Explains the calmest level that breaks; if none does, the harshest that was measured."""
    calm = sets.get(plan.search.scale.calm)
    if calm is None or len(sets) < 2:
        return None
    limit = plan.criterion.limit(calm)
    threshold = bisection.breaks.level if bisection.breaks else list(sets)[-1]
    return find_cause(
        sets,
        threshold=threshold,
        bracket=[each.level for each in (bisection.holds, bisection.breaks) if each is not None and each.level in sets],
        ended_early=ended_early.get(threshold, ()),
        criterion_metric=plan.criterion.metric_name,
        is_broken=lambda trial: plan.criterion.is_broken(trial, limit),
    )
