"""Criteria for broken trials and levels.

``success<0.5``: a failed trial is broken; a level is broken if fewer than half of its trials would succeed.
``T3p99>3x``: a trial is broken if it failed, or if its metric is beyond three times the median of the calm end;
a level is broken if more than half of its trials would be, i.e. if its median is beyond this limit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown
from pytest_ldos.base.series import Better, Invalid, Missing
from pytest_ldos.base.text import format_quantity
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import Trial, TrialSet
from pytest_ldos.robot.stack.goals import OutcomeClass

SUCCESS: Final = "success"
_HALF: Final = 0.5
_FORM: Final = re.compile(r"\s*(?P<what>\w+)\s*(?P<side>[<>])\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|x|×)?\s*")
_REMEDY: Final = "write it as success<0.5, success<50% or T3p99>3x"


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

    def limit(self, calm: TrialSet | None) -> None:
        """No limit: any failed trial is broken."""

    def median(self, trials: TrialSet) -> float | None:
        """No median: a success rate has none."""
        return None

    def is_broken(self, trial: Trial, limit: float | None) -> bool | None:
        """True if the trial failed."""
        return not trial.succeeded

    def why_unvalued(self, trial: Trial) -> str:
        """Always empty: every trial has an outcome."""
        return ""


@dataclass(frozen=True)
class MetricBeyond:
    """Broken if a metric's median is beyond a multiple of its median at the calm end."""

    metric: Metric
    factor: float

    @property
    def metric_name(self) -> str:
        return self.metric.name

    @property
    def unit(self) -> str:
        return self.metric.unit

    @property
    def boundary(self) -> float:
        """One half: a median is beyond the limit if more than half of the values are."""
        return _HALF

    def describe(self) -> str:
        side = "below" if self.metric.better is Better.HIGHER else "beyond"
        return f"the median of {self.metric.name} is {side} {self.factor:g} × its calm one"

    def describe_limit(self, limit: float | None) -> str:
        """The limit in numbers, once the calm end is measured."""
        if limit is None:
            return ""
        shown = format_quantity(limit, self.metric.unit)
        return f"{shown}, {self.factor:g} × the median of {format_quantity(limit / self.factor, self.metric.unit)}"

    def limit(self, calm: TrialSet | None) -> float | None:
        """Limit beyond which a trial is broken; ``None`` if the calm end has no value."""
        calm_median = None if calm is None else self.median(calm)
        return None if calm_median is None else calm_median * self.factor

    def median(self, trials: TrialSet) -> float | None:
        """Median of the metric over the successful trials."""
        found = values_of(trials, self.metric.name)
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


def values_of(trials: TrialSet, metric: str) -> list[float]:
    """Values of the successful trials in which the metric was measured."""
    found = (trial.measurements.get(metric) for trial in trials.trials if trial.succeeded)
    return [each.number for each in found if each is not None and each.number is not None]


def parse_criterion(text: str, metrics: dict[str, Metric]) -> Criterion:
    """Parses the value of ``--until``.

    Args:
        metrics: metrics that are measured, by name.

    Raises:
        ConfigurationError: malformed text, an unknown metric (the message has the nearest match), or an invalid number.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ConfigurationError(f"--until {text!r} says no criterion", remedy=_REMEDY)
    what, side, number, unit = match["what"], match["side"], float(match["number"]), match["unit"] or ""
    refuse_unknown([what], [SUCCESS, *metrics], "metric in --until:")
    if what == SUCCESS:
        return _success_below(text, side, number / 100 if unit == "%" else number, unit)
    return _beyond(text, metrics[what], side, number, unit)


def _success_below(text: str, side: str, level: float, unit: str) -> SuccessBelow:
    if side != "<" or unit in {"x", "×"} or not 0 < level < 1:
        raise ConfigurationError(
            f"--until {text!r}: a success rate breaks below a level between 0 and 1", remedy="write it as success<0.5"
        )
    return SuccessBelow(level)


def _beyond(text: str, metric: Metric, side: str, factor: float, unit: str) -> MetricBeyond:
    worse = "<" if metric.better is Better.HIGHER else ">"
    sense = factor < 1 if metric.better is Better.HIGHER else factor > 1
    example = f"{metric.name}{worse}{0.5 if metric.better is Better.HIGHER else 3}x"
    if side != worse or unit not in {"x", "×"} or not (sense and factor):
        raise ConfigurationError(
            f"--until {text!r}: {metric.name} breaks beyond a multiple of its calm median",
            remedy=f"write it as {example}",
        )
    return MetricBeyond(metric, factor)


Answer = TypeVar("Answer", bool, bool | None)


def arm_ended(trials: TrialSet) -> bool:
    """True if the arm failed under all its loads so that no further trial was possible.

    Either its stack died, or it could not return home. Failures before all loads were running do not count. For
    interleaved versions, the record does not show which stack failed.
    """
    return bool(trials.incomplete) and not trials.session and len(trials.loads) >= len(trials.spec.loads)


def has_lost_motion(trials: TrialSet) -> bool:
    """True if the start ended in a motion that is not a trial, such as the way home."""
    last = trials.trials[-1] if trials.trials else None
    return arm_ended(trials) and (last is None or last.outcome is not OutcomeClass.STACK_DIED)


def with_lost_motion(broken: Sequence[Answer], trials: TrialSet) -> list[Answer]:
    """Adds failed resets to the broken trials: a trial also counts as broken if its reset took two attempts.

    Args:
        broken: results of the trials without resets. A start that failed before its first trial yields one broken
            trial.
    """
    answers = list(broken)
    for place, trial in enumerate(trials.motions):
        if trial.reset_failure:
            answers[place] = True
    if has_lost_motion(trials):
        answers[-1:] = [True]
    return answers
