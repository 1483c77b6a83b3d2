"""Each metric of two versions, as gate and trials give it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pytest_ldos.base.series import Series
from pytest_ldos.base.stats.location import median
from pytest_ldos.judge.gate.comparison import Comparison, adjusted_variation, coefficient_of_variation
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.shape import Finding, LateRise
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.measure.trial.series_of import invalid_trials, metrics_of, missing_reasons, sources_of
from pytest_ldos.show.page.data_text import finite
from pytest_ldos.show.report.aspects import describe_aspect
from pytest_ldos.show.report.document import AspectReport, Change, Gap, MetricReport, Point, Sample
from pytest_ldos.show.report.reasons import describe_reason
from pytest_ldos.show.report.sources import report_origins


def report_metrics(head: TrialSet, result: GateResult, base: TrialSet | None) -> tuple[MetricReport, ...]:
    """Every metric that is taken, and what only the base has."""
    found = head.metrics if base is None else metrics_of(head, base).values()
    return tuple(_report(metric, head, result) for metric in found)


def _report(metric: Metric, head: TrialSet, result: GateResult) -> MetricReport:
    comparison = result.comparison(metric.name)
    incomparable = result.incomparable.get(metric.name)
    own = None if incomparable is None else Verdict.NOT_COMPARABLE
    return MetricReport(
        name=metric.name,
        title=metric.title,
        unit=metric.unit,
        better=metric.better,
        verdict=own if comparison is None else comparison.verdict,
        head=_sample(metric, result.head_series.get(metric.name)),
        base=None if comparison is None else _sample(metric, result.base_series.get(metric.name)),
        change=None if comparison is None else _change(comparison),
        origins=report_origins(sources_of(head, metric)),
        gaps=_gaps(metric, head),
        incomparable="" if incomparable is None else describe_reason(incomparable),
        aspects=() if comparison is None else tuple(map(_aspect, comparison.findings)),
    )


def _aspect(found: Finding) -> AspectReport:
    aspect = found.shape.aspect
    of_base, of_head = (None, aspect.ratio) if isinstance(aspect, LateRise) else (aspect.base, aspect.head)
    return AspectReport(
        name=aspect.name,
        words=describe_aspect(aspect),
        base=None if of_base is None else finite(of_base),
        head=finite(of_head),
        p_value=found.shape.p_value,
        tail=found.tail,
        is_regressed=found.is_regressed,
        is_suspect=found.is_suspect,
    )


def _sample(metric: Metric, series: Series | None) -> Sample | None:
    if series is None or not series.values:
        return None
    return Sample(
        median=median(series.finite) if series.finite else None,
        cv=finite(coefficient_of_variation(series)),
        adjusted_cv=adjusted_variation(metric, series),
        censored=len(series) - len(series.finite),
        points=tuple(map(_point, series.trials, series.blocks, series.strata, series.values)),
    )


def _point(trial: int, block: int, goal: str, value: float) -> Point:
    return Point(trial=trial + 1, block=block, goal=goal, value=finite(value))


def _change(comparison: Comparison) -> Change:
    if not comparison.has_ratio:
        return _without_ratios(comparison)
    is_open_below = comparison.low <= 0 and math.isinf(comparison.high)
    return Change(
        ratio=finite(comparison.ratio),
        low=None if is_open_below else finite(comparison.low),
        high=finite(comparison.high),
        tail=comparison.tail,
        p_value=comparison.p_value,
        floor=comparison.floor,
        mde=finite(comparison.mde),
        explained=comparison.explained,
        is_endless=comparison.low == math.inf,
    )


def _without_ratios(comparison: Comparison) -> Change:
    return Change(
        ratio=None,
        low=None,
        high=None,
        tail=comparison.tail,
        p_value=comparison.p_value,
        floor=comparison.floor,
        mde=None,
        explained=comparison.explained,
        is_from_zero=comparison.is_from_zero,
        is_below_zero=not comparison.is_from_zero,
    )


def _gaps(metric: Metric, trials: TrialSet) -> tuple[Gap, ...]:
    faults = _by_reason(invalid_trials(trials, metric))
    absent = _by_reason(missing_reasons(trials, metric))
    return (
        *(Gap(reason=reason, trials=numbers, is_fault=True) for reason, numbers in faults.items()),
        *(Gap(reason=reason, trials=numbers) for reason, numbers in absent.items()),
    )


def _by_reason(reasons: Mapping[int, str]) -> dict[str, tuple[int, ...]]:
    grouped: dict[str, tuple[int, ...]] = {}
    for index, reason in reasons.items():
        grouped[reason] = (*grouped.get(reason, ()), index + 1)
    return grouped
