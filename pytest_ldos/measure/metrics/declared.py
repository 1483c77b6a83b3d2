"""Metrics of paths, topics, processes, loops and numbers, made from what a project asks for in its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from pytest_ldos.base.series import Better
from pytest_ldos.base.units import UNITS
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.loops import loop_of
from pytest_ldos.measure.metrics.measured import MeasuredMetric
from pytest_ldos.measure.metrics.model import (
    CPU_WORK,
    DECLARED_SHARE,
    PLANNED_DURATION,
    USUAL_FLOOR,
    Measurement,
    Window,
)
from pytest_ldos.measure.metrics.path_latency import latency_of
from pytest_ldos.measure.metrics.reported import number_of
from pytest_ldos.measure.metrics.resources import use_of
from pytest_ldos.measure.metrics.traffic import largest_gap_of, rate_of
from pytest_ldos.scenario.metrics import EVERY_PROCESS, MetricKind, MetricSpec, PathStatistic


@dataclass(frozen=True, kw_only=True)
class DeclaredMetric(MeasuredMetric):
    """A metric that comes from the settings.

    Attributes:
        spec: what was asked for.
    """

    spec: MetricSpec


@dataclass(frozen=True)
class _Sort:
    """Common properties of the metrics of a kind.

    Attributes:
        title: for people, with a place for the subject.
        floor, tolerable: usual floor and largest tolerable MDE.
        grows: True if it grows with the duration of a trial and with how slow the CPU is.
    """

    title: str
    unit: str
    definition: str
    floor: float = USUAL_FLOOR
    tolerable: float = 0.5
    better: Better = Better.LOWER
    grows: bool = False


_OF_RATES: Final = 0.01
"""Usual floor of rates, which differ by some thousandths between trials of one version; that of mean periods."""

_OF_MEMORY: Final = 0.01
"""Usual floor of memory: between trials and starts of the embedded stack it differs by one or two thousandths."""

_SORTS: Final = {
    MetricKind.RATE: _Sort(
        "rate of {}", "Hz", "publications a second in the trial", _OF_RATES, 0.1, better=Better.HIGHER
    ),
    MetricKind.GAP: _Sort("largest gap of {}", "ms", "longest time in the trial without a publication", tolerable=2.0),
    MetricKind.CPU: _Sort("CPU time of {}", "ms", "user and system time during the trial", tolerable=0.3, grows=True),
    MetricKind.MEMORY: _Sort(
        "peak memory of {}",
        "MB",
        "largest resident memory during the trial, without pages of files and shared memory",
        _OF_MEMORY,
        0.1,
    ),
    MetricKind.SWITCHES: _Sort(
        "context switches of {}", "", "voluntary and involuntary switches of all threads", grows=True
    ),
    MetricKind.UPDATE: _Sort("update of {}", "ms", "mean duration of an update in the trial", tolerable=0.3),
    MetricKind.JITTER: _Sort("jitter of {}", "ms", "standard deviation of the periods of its updates", tolerable=1.0),
    MetricKind.NUMBER: _Sort("{}", "", "as the stimulus reports it of each trial"),
    MetricKind.FAULTS: _Sort("page faults of {}", "", "minor and major page faults", tolerable=2.0),
}

_PATH_SORTS: Final = {
    PathStatistic.P50: _Sort("{}, p50", "ms", "median latency of passages that ended in the trial", tolerable=0.3),
    PathStatistic.P99: _Sort("{}, p99", "ms", "99th percentile of these latencies", tolerable=1.0),
    PathStatistic.MISSES: _Sort("{}, misses", "", "passages that took longer than the path's deadline", tolerable=2.0),
}


def declare(spec: MetricSpec) -> DeclaredMetric:
    """The metric that was asked for."""
    sort = _PATH_SORTS[spec.statistic] if spec.statistic is not None else _SORTS[spec.kind]
    covariates: dict[str, Any] = {"adjust_for": (CPU_WORK,)} if sort.grows and spec.kind is MetricKind.CPU else {}
    if sort.grows:
        covariates["adjust_where_alike"] = (PLANNED_DURATION,)
    return DeclaredMetric(
        name=spec.name,
        title=sort.title.format(_subject(spec)),
        unit=_unit_in(spec.subject) if spec.kind is MetricKind.NUMBER else sort.unit,
        better=spec.better if spec.kind is MetricKind.NUMBER else sort.better,
        error_share=DECLARED_SHARE,
        largest_tolerable_mde=sort.tolerable,
        usual_floor=sort.floor,
        asked_as=str(spec),
        window=TrialContext.trial_window,
        measure=_measure(spec),
        definition=sort.definition,
        path="" if spec.path is None else spec.path.name,
        in_sweeps=True,
        spec=spec,
        **covariates,
    )


def in_traces(specs: Iterable[MetricSpec]) -> tuple[MetricSpec, ...]:
    """Those that a trace alone has."""
    return tuple(spec for spec in specs if spec.kind.is_in_traces)


def declared_in(metrics: Iterable[MeasuredMetric]) -> tuple[MetricSpec, ...]:
    """The settings that some metrics come from."""
    return tuple(metric.spec for metric in metrics if isinstance(metric, DeclaredMetric))


def _unit_in(name: str) -> str:
    """Unit with which the name of a number ends (``distance_m``); empty without one."""
    ending = name.rpartition("_")[2]
    return ending if ending in UNITS and ending != name else ""


def _subject(spec: MetricSpec) -> str:
    if spec.process == EVERY_PROCESS:
        return f"all processes{f', threads {spec.thread}' if spec.thread else ''}"
    return spec.subject


def _measure(spec: MetricSpec) -> Callable[[TrialContext, Window], Measurement]:
    if spec.path is not None and spec.statistic is not None:
        return latency_of(spec.path, spec.statistic)
    match spec.kind:
        case MetricKind.RATE:
            return rate_of(spec.subject)
        case MetricKind.GAP:
            return largest_gap_of(spec.subject)
        case MetricKind.NUMBER:
            return number_of(spec.subject)
        case MetricKind.UPDATE | MetricKind.JITTER:
            return loop_of(spec)
    return use_of(spec)
