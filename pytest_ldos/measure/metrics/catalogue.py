"""All metrics that are measured and gated: the built-in ones, and those that users register."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.measure.metrics.latency import T1, T2, T2X, T4
from pytest_ldos.measure.metrics.measured import MeasuredMetric
from pytest_ldos.measure.metrics.model import OWN_SHARES
from pytest_ldos.measure.metrics.own import OwnMetric, require_own
from pytest_ldos.measure.metrics.plans import T1_MEAN
from pytest_ldos.measure.metrics.regularity import T3, T3_MEAN, T3_P90, T3_P99, T5, T5_MEAN, T5_P99

Catalogue = Mapping[str, MeasuredMetric]
"""Metrics by name, in display order."""

_BUILT_IN: Final = (T1, T1_MEAN, T2, T2X, T3, T3_MEAN, T3_P90, T3_P99, T4, T5, T5_MEAN, T5_P99)

METRICS: Final[Catalogue] = {metric.name: metric for metric in _BUILT_IN}
"""Built-in metrics. A record carries the descriptions of its own metrics (`TrialSet.metrics`)."""


def catalogue_of(own: Iterable[OwnMetric]) -> Catalogue:
    """Built-in metrics and a user's.

    Raises:
        ConfigurationError: an element is no `OwnMetric`, or a name is taken.
    """
    registered: dict[str, OwnMetric] = {}
    for metric in require_own(own):
        if metric.name in METRICS:
            raise ConfigurationError(
                f"metric '{metric.name}' ({metric.origin}) cannot be called so: "
                f"it is our name of {METRICS[metric.name].title}",
                remedy="give it another name",
            )
        other = registered.setdefault(metric.name, metric)
        if other is not metric:
            raise ConfigurationError(
                f"two metrics are called '{metric.name}' ({other.origin}, {metric.origin})",
                remedy="give one of them another name",
            )
    shares = (OWN_SHARES * 6 / (math.pi * number) ** 2 for number in count(1))
    numbered = zip(registered.items(), shares, strict=False)
    return {**METRICS, **{name: metric.to_measured(error_share=share) for (name, metric), share in numbered}}
