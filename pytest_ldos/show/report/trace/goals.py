"""The goals of a trace: the median and the worst one in phases, and the distribution of each of T1 to T5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pytest_ldos.base.units import counted, format_quantity
from pytest_ldos.measure.metrics.extract import TrialMetrics
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.show.page.model import Block, Drawing, Figure, Section, Text
from pytest_ldos.show.report.goals import Measured
from pytest_ldos.show.report.trace.histogram import draw_values
from pytest_ldos.show.report.trace.passages import show_waterfalls
from pytest_ldos.show.report.trace.waterfall import Part, Waterfall
from pytest_ldos.trace.execution.model import TrialSpan


def show_goals(goals: Measured, metrics: Sequence[Metric]) -> Iterator[Section]:
    """The section of goals; none without any."""
    trials = [each.trial for each in goals.values() if each.trial is not None]
    if trials:
        told = Text(f"{counted(len(trials), 'goal')}; the table below has each, and leads to its slice of the timeline")
        yield Section("Goals, phase by phase", (*_waterfalls(trials), told, *_metrics(goals, metrics)))


def _waterfalls(trials: Sequence[TrialSpan]) -> Iterator[Block]:
    whole = sorted((each for each in map(_phases, trials) if len(each.parts) > 1), key=lambda each: each.duration_ns)
    if len(whole) > 1:
        median, worst = whole[(len(whole) - 1) // 2], whole[-1]
        yield from show_waterfalls(
            Waterfall(f"median goal, {median.title}", median.parts),
            Waterfall(f"slowest goal, {worst.title}", worst.parts),
        )


def _phases(trial: TrialSpan) -> Waterfall:
    entered = sorted((at, phase.value) for phase, at in trial.phases.items())
    parts = tuple(Part(f"{one} to {other}", end - begin) for (begin, one), (end, other) in pairwise(entered))
    return Waterfall(f"{trial.scenario} {trial.index + 1}" if trial.marked else trial.goal_id, parts)


def _metrics(goals: Measured, metrics: Sequence[Metric]) -> Iterator[Block]:
    for metric in metrics:
        values = [value for each in goals.values() if (value := _value(each, metric)) is not None]
        if len(values) > 1:
            yield _distribution(metric, values)


def _value(measured: TrialMetrics, metric: Metric) -> float | None:
    return measured.measurements[metric.name].number


def _distribution(metric: Metric, values: Sequence[float]) -> Figure:
    ordered = sorted(values)
    told = ", ".join(
        f"{what} {format_quantity(value, metric.unit)}"
        for what, value in (
            ("median", ordered[(len(ordered) - 1) // 2]),
            ("worst", ordered[-1 if metric.better == "lower" else 0]),
        )
    )
    return Figure(
        title=f"{metric.name} {metric.title}: {told}",
        drawings=(Drawing(lambda: draw_values(f"{metric.name} of goals", values, metric.unit)),),
    )
