"""Divides a run's probability of error by weight among what it judges; something new changes no weight but its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pytest_ldos.judge.gate.aspects import LOCATION_WEIGHT, Shape
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import OWN_SHARES, Metric

LOCATION: Final = "location"


def metric_shares(metrics: Iterable[Metric]) -> dict[str, float]:
    """Share of each metric that is judged in a scenario.

    Metrics of users have theirs reserved: one more or less of them changes nothing for the others.
    """
    weights = {metric.name: metric.error_share for metric in metrics}
    own = sum(weight for name, weight in weights.items() if name not in METRICS)
    total = max(own, OWN_SHARES) + sum(weight for name, weight in weights.items() if name in METRICS)
    return {name: weight / total for name, weight in weights.items()}


def aspect_shares(shapes: Iterable[Shape]) -> dict[str, float]:
    """Share of a metric's location, and of each other aspect of it that is tested; 1 in total."""
    weights = {LOCATION: LOCATION_WEIGHT, **{each.aspect.name: each.aspect.weight for each in shapes}}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
