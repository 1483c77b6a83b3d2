"""Metrics and goals that only one of the two versions has."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pytest_ldos.judge.gate.case import Case
from pytest_ldos.judge.gate.reasons import (
    EmptyBaseline,
    LostGoal,
    LostMetric,
    NewGoal,
    NewMetric,
    NothingInCommon,
    OtherGoals,
)
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.series_of import missing_reasons


def lost_metrics(case: Case, *, but: Collection[str]) -> Iterator[LostMetric]:
    """Metrics that the baseline has and the run lost, each with the reason.

    Args:
        but: metrics to leave out.
    """
    for name, metric in case.metrics.items():
        ours, theirs = case.series(name)
        if name not in but and len(theirs) and not len(ours):
            yield LostMetric(name, next(iter(missing_reasons(case.head, metric).values()), "no trial measured it"))


def new_metrics(case: Case, *, but: Collection[str]) -> list[NewMetric]:
    """Metrics that the run has and the baseline lacks; see `lost_metrics`."""
    both = ((name, *case.series(name)) for name in case.metrics if name not in but and case.base.trials)
    return [NewMetric(name) for name, ours, theirs in both if len(ours) and not len(theirs)]


def stands_beside(metric: str) -> bool:
    """True for our own metrics that refine another: a baseline of an earlier version without them is still one."""
    return metric in METRICS and bool(METRICS[metric].refines)


def lost_goals(case: Case) -> list[NewGoal | LostGoal]:
    """Goals that only one side has, if there are common ones: their trials are not compared."""
    heads, bases = _goals(case.head), _goals(case.base)
    if not heads & bases:
        return []
    return [*map(NewGoal, sorted(heads - bases)), *map(LostGoal, sorted(bases - heads))]


def why_nothing_compares(case: Case) -> EmptyBaseline | NothingInCommon | OtherGoals:
    if not case.base.trials:
        return EmptyBaseline()
    heads, bases = _goals(case.head), _goals(case.base)
    return NothingInCommon() if heads & bases else OtherGoals(tuple(sorted(heads)), tuple(sorted(bases)))


def _goals(trials: TrialSet) -> set[str]:
    return {trial.goal for trial in trials.trials}
