"""Calibrations of a host from simulated trials, by the estimates of ``ldos calibrate``."""

from __future__ import annotations

import numpy as np

from benchmarks.scorecard.sample import Numbers
from pytest_ldos.base.stats.starts import estimate_components
from pytest_ldos.campaign.noise import to_noise
from pytest_ldos.judge.baseline.key import MetricNoise


def learn_noise(values: Numbers) -> MetricNoise:
    """From runs of unchanged code at different times.

    Args:
        values: shape (runs, starts, trials), positive; NaN where there is no trial.

    Raises:
        ValueError: too few values to tell anything.
    """
    logs = np.log(values)
    found = estimate_components([[start[np.isfinite(start)] for start in run] for run in logs])
    if found is None:
        raise ValueError("fewer than two starts, or two trials in none")
    return to_noise(found)
