"""Takes out of planning latencies the time for which programs outside the measurement had the planner's CPU.

It is subtracted as it was measured in each trial, so no more is taken out than was measured. It stays in where it is
not known of every trial of both versions: otherwise one would be compared without what the other still contains.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pytest_ldos.base.series import Series
from pytest_ldos.measure.metrics.latency import T1, T4
from pytest_ldos.measure.metrics.model import PLANS_WAITED_FOR_STRANGERS, WAITED_FOR_STRANGERS
from pytest_ldos.measure.metrics.plans import T1_MEAN

_CONTAINED_IN: Final[Mapping[str, str]] = {
    T1.name: WAITED_FOR_STRANGERS,
    T1_MEAN.name: PLANS_WAITED_FOR_STRANGERS,
    T4.name: WAITED_FOR_STRANGERS,
}
"""Covariates that are a part of a metric's values, by metric."""


def without_strangers(head: Series, base: Series) -> tuple[Series, Series]:
    """Series of one metric, less what strangers took if that is known of both."""
    part = _CONTAINED_IN.get(head.name)
    if part is None or not all(_is_known(part, each) for each in (head, base)):
        return head, base
    return _less(part, head), _less(part, base)


def _is_known(part: str, series: Series) -> bool:
    taken = series.covariates.get(part, (math.nan,) * len(series))
    return all(0 <= some < value for value, some in zip(series.values, taken, strict=True) if math.isfinite(value))


def _less(part: str, series: Series) -> Series:
    pairs = zip(series.values, series.covariates[part], strict=True)
    return replace(series, values=tuple(value - some if math.isfinite(value) else value for value, some in pairs))
