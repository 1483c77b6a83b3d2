"""Trial sets that have a metric of a user's own."""

from __future__ import annotations

import dataclasses
import random

from pytest_ldos.base.series import Better, Value
from pytest_ldos.measure.metrics.model import Measurement, Metric
from pytest_ldos.measure.trial.record import TrialSet

GRIP_RATE = Metric(name="grip_rate", title="rate of the gripper", unit="Hz", better=Better.HIGHER, error_share=0.02)


def with_own(
    trials: TrialSet, factor: float = 1.0, *, metric: Metric = GRIP_RATE, value: Value | None = None
) -> TrialSet:
    """About 50 times a factor in each trial, or one value in all."""
    rng = random.Random(trials.trials[0].measurements["T1"].number)
    changed = []
    for each in trials.trials:
        own = Measurement(50 * factor * rng.lognormvariate(0, 0.03) if value is None else value)
        changed.append(dataclasses.replace(each, measurements={**each.measurements, metric.name: own}))
    return dataclasses.replace(trials, trials=tuple(changed), metrics=(*trials.metrics, metric))
