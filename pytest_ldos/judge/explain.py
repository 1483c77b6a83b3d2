"""Attributes a change between two runs to segments of a path, or to processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_ldos.base.stats.rank_tests import Sample, estimate_shift
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.metrics.resources import parts_of
from pytest_ldos.measure.metrics.segments import LATENCY
from pytest_ldos.measure.trial.record import MotionTrial, TrialSet
from pytest_ldos.scenario.metrics import MetricKind

CONFIDENCE: Final = 0.95

METRIC_PATHS: Final = {metric.name: metric.path for metric in METRICS.values() if metric.path}
"""Path whose latency each metric measures, by metric."""


def path_of(metric: Metric) -> str:
    """The path that a metric measures; empty if it measures none."""
    kind, _, subject = metric.asked_as.partition(":")
    asked = subject.rpartition(":")[0] if kind == MetricKind.PATH else ""
    return asked or METRIC_PATHS.get(metric.name, "")


@dataclass(frozen=True)
class SegmentChange:
    """Change in the duration of one segment.

    Attributes:
        segment: ``KIND: SUBJECT``.
        base_ns, head_ns: medians over the trials.
        change_ns: Hodges–Lehmann estimate of head minus base.
        low_ns, high_ns: its interval; infinite with too few trials.
        share: share of the sum of all segments' changes; negative for a change in the opposite direction.
    """

    segment: str
    base_ns: float
    head_ns: float
    change_ns: float
    low_ns: float
    high_ns: float
    share: float

    @property
    def is_certain(self) -> bool:
        """True if the interval excludes zero."""
        return self.low_ns > 0 or self.high_ns < 0


@dataclass(frozen=True)
class Explanation:
    """Breakdown of the change of one path's latency by segment.

    Attributes:
        path: name of the path.
        whole: change of the path's whole latency.
        changes: changes of its segments, the largest share first.
    """

    path: str
    whole: SegmentChange
    changes: tuple[SegmentChange, ...]


def explain(base: TrialSet, head: TrialSet, *, confidence: float = CONFIDENCE) -> dict[str, Explanation]:
    """Explains each path that occurs in both runs, by path name.

    Args:
        base: a run or a stored baseline; its trials contain the durations of their segments.
        confidence: confidence level of each interval.

    A segment that is absent from a trial counts as zero. Failed trials are left out, because their paths are
    incomplete.
    """
    names = dict.fromkeys(name for trial in head.motions for name in trial.segments_ns)
    found = {name: _explain(name, base.motions, head.motions, (1 - confidence) / 2) for name in names}
    return {name: each for name, each in found.items() if each is not None}


def _explain(path: str, base: Sequence[MotionTrial], head: Sequence[MotionTrial], tail: float) -> Explanation | None:
    before, after = _segments(base, path), _segments(head, path)
    if not before or not after:
        return None
    segments = dict.fromkeys(name for trial in (*after, *before) for name in trial if name != LATENCY)
    shifts = {
        name: estimate_shift(_values(after, name), _values(before, name), tail=tail) for name in (LATENCY, *segments)
    }
    total = sum(shifts[name].estimate for name in segments)
    changes = {
        name: SegmentChange(
            segment=name,
            base_ns=float(np.median(_values(before, name))),
            head_ns=float(np.median(_values(after, name))),
            change_ns=shift.estimate,
            low_ns=shift.low,
            high_ns=shift.high,
            share=shift.estimate / total if total else 0.0,
        )
        for name, shift in shifts.items()
    }
    whole = changes.pop(LATENCY)
    return Explanation(path, whole, tuple(sorted(changes.values(), key=lambda change: -change.share)))


def _segments(trials: Sequence[MotionTrial], path: str) -> list[Mapping[str, int]]:
    return [trial.segments_ns[path] for trial in trials if trial.succeeded and path in trial.segments_ns]


def _values(trials: Sequence[Mapping[str, int] | Mapping[str, float]], name: str) -> Sample:
    return np.array([trial.get(name, 0) for trial in trials], dtype=np.float64)


@dataclass(frozen=True)
class PartChange:
    """Change of the part of one process.

    Attributes:
        process: its name.
        change: Hodges–Lehmann estimate of head minus base, in the metric's unit.
        low, high: its interval; infinite with too few trials.
        share: share of the sum of all changes; negative for a change in the opposite direction.
    """

    process: str
    change: float
    low: float
    high: float
    share: float

    @property
    def is_certain(self) -> bool:
        """True if the interval excludes zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class PartsExplanation:
    """Breakdown of a metric's change by process, the largest share first."""

    metric: Metric
    parts: tuple[PartChange, ...]


def explain_parts(
    base: TrialSet, head: TrialSet, metrics: Iterable[Metric], *, confidence: float = CONFIDENCE
) -> list[PartsExplanation]:
    """Explains each metric that is a sum over several processes; others are left out.

    A process that is absent from a trial counts as zero.
    """
    found = ((metric, _parts(base, metric), _parts(head, metric)) for metric in metrics)
    tail = (1 - confidence) / 2
    return [PartsExplanation(metric, _changes(old, new, tail)) for metric, old, new in found if old and new]


def _parts(trials: TrialSet, metric: Metric) -> list[Mapping[str, float]]:
    measured = (each.measurements.get(metric.name) for each in trials.trials if each.succeeded)
    parts = (parts_of(metric, each) for each in measured if each is not None and each.number is not None)
    return [each for each in parts if each]


def _changes(
    base: Sequence[Mapping[str, float]], head: Sequence[Mapping[str, float]], tail: float
) -> tuple[PartChange, ...]:
    names = dict.fromkeys(name for each in (*head, *base) for name in each)
    shifts = {name: estimate_shift(_values(head, name), _values(base, name), tail=tail) for name in names}
    total = sum(shift.estimate for shift in shifts.values())
    changes = (
        PartChange(name, shift.estimate, shift.low, shift.high, shift.estimate / total if total else 0.0)
        for name, shift in shifts.items()
    )
    return tuple(sorted(changes, key=lambda each: -each.share))
