"""Explains which processes changed a sum over several of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_ldos.base.stats.rank_sum import Sample, estimate_shift
from pytest_ldos.judge.explain.explain import CONFIDENCE
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.metrics.resources import parts_of
from pytest_ldos.measure.trial.record import TrialSet


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
    """Compares the processes of each metric that is a sum over several; others are left out.

    A process that is absent from a trial counts as zero in it.
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


def _values(parts: Sequence[Mapping[str, float]], name: str) -> Sample:
    return np.array([each.get(name, 0.0) for each in parts], dtype=np.float64)
