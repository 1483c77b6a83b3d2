"""The goals of a trace with their metrics, for a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.units import format_duration, format_quantity
from pytest_ldos.measure.metrics.extract import TrialMetrics
from pytest_ldos.measure.metrics.model import Measurement, Metric
from pytest_ldos.robot.stack.goals import ErrorCode
from pytest_ldos.show.page.model import ABSENT
from pytest_ldos.show.report.sources import describe_origins, qualified, report_origins
from pytest_ldos.trace.execution.model import TrialSpan

Measured = Mapping[str, TrialMetrics]
"""Goals by their id, as `extract_metrics` gives them."""


def tabulate_goals(measured: Measured, metrics: Sequence[Metric]) -> pl.DataFrame:
    """One row a goal, all texts: `goal`, `began` (after the first goal did), `outcome`, and each metric by its name."""
    trials = [each.trial for each in measured.values() if each.trial is not None]
    first_ns = min((trial.begin_ns for trial in trials), default=0)
    return pl.DataFrame([_row(each, metrics, first_ns) for each in measured.values()])


def describe_goals(measured: Measured, metrics: Sequence[Metric]) -> Iterator[str]:
    """Sources of numbers, and reasons for their absence."""
    found = {metric.name: [each.measurements[metric.name] for each in measured.values()] for metric in metrics}
    sources = {name: {each.source for each in column if each.source is not None} for name, column in found.items()}
    yield from describe_origins({name: report_origins(each) for name, each in sources.items()})
    without: dict[str, dict[str, None]] = {}
    for name, column in found.items():
        for value in (each.value for each in column):
            if isinstance(value, Missing | Invalid):
                without.setdefault(value.reason, {})[name] = None
    yield from (f"no {', '.join(names)}: {reason}" for reason, names in without.items())


def _row(measured: TrialMetrics, metrics: Sequence[Metric], first_ns: int) -> dict[str, str]:
    trial = measured.trial
    values = {metric.name: _cell(measured.measurements[metric.name], metric.unit) for metric in metrics}
    if trial is None:
        return {"goal": ABSENT, "began": ABSENT, "outcome": ABSENT, **values}
    name = f"{trial.scenario} {trial.index + 1}" if trial.marked else trial.goal_id
    began = format_duration(trial.begin_ns - first_ns) if trial.begin_ns > first_ns else "0 s"
    return {"goal": name, "began": began, "outcome": _outcome(trial), **values}


def _outcome(trial: TrialSpan) -> str:
    if trial.end_ns is None:
        return "no end"
    if trial.error_code is None:
        return "unknown"
    return "success" if trial.error_code == ErrorCode.SUCCESS else f"MoveIt code {trial.error_code}"


def _cell(measurement: Measurement, unit: str) -> str:
    if measurement.number is None:
        return ABSENT
    sources = () if measurement.source is None else (measurement.source,)
    return qualified(format_quantity(measurement.number, unit), report_origins(sources))
