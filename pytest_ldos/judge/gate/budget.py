"""Divides a run's probability of error by weight among what it judges; something new changes no weight but its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from pytest_ldos.judge.gate.aspects import LOCATION_WEIGHT, Shape
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import OWN_SHARES, Metric

LOCATION: Final = "location"

_IN_PLACE_OF: Final[Mapping[str, Collection[str]]] = {
    "T2": {"T2x"},
    "T3": {"T3mean", "T3p90"},
    "T5": {"T5mean", "T5p99"},
}
"""Metrics that are judged in place of one that varies more from trial to trial, by that one's name."""


def only_shown(metrics: Collection[str], required: Collection[str] = ()) -> frozenset[str]:
    """Metrics that are shown and not judged: all that are judged in their place are there.

    Args:
        required: metrics that the project wants judged.
    """
    return frozenset(name for name, instead in _IN_PLACE_OF.items() if name not in required and instead <= {*metrics})


def metric_shares(metrics: Iterable[Metric]) -> dict[str, float]:
    """Share of each metric that is judged in a scenario.

    Metrics of a user's own have theirs reserved: one more or less of them changes nothing for the others. Metrics of
    paths, topics and processes are asked for in the project's settings, and bring their weight.
    """
    judged = tuple(metrics)
    own = sum(metric.error_share for metric in judged if _is_own(metric))
    total = max(own, OWN_SHARES) + sum(metric.error_share for metric in judged if not _is_own(metric))
    return {metric.name: metric.error_share / total for metric in judged}


def _is_own(metric: Metric) -> bool:
    return metric.name not in METRICS and not metric.asked_as


def aspect_shares(shapes: Iterable[Shape]) -> dict[str, float]:
    """Share of a metric's location, and of each other aspect of it that is tested; 1 in total."""
    weights = {LOCATION: LOCATION_WEIGHT, **{each.aspect.name: each.aspect.weight for each in shapes}}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}
