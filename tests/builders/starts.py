"""Starts of one version with known noise, as a calibration measures them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pytest_ldos.measure.trial.record import TrialSet
from tests.builders.trials import TYPICAL, failed_trial, trial, trial_set

TRIAL_SD = {"T1": 0.1, "T2": 0.001, "T2x": 0.05, "T3": 0.1, "T4": 0.001, "T5": 0.1}


def measured_run(
    seed: int,
    *,
    starts: int = 8,
    trials: int = 8,
    start_sd: float = 0.02,
    drift: float = 0.0,
    level: float = 0.0,
    trial_sd: Mapping[str, float] | None = None,
    failures: int = 0,
    **changes,
) -> TrialSet:
    """A run in which starts differ, and drift steadily by a relative amount from the first to the last.

    T2 and T4 differ between starts a hundred times less. The last trials of each start may fail.
    """
    rng = np.random.default_rng(seed)
    sds = {**TRIAL_SD, **(trial_sd or {})}
    made = []
    for block in range(starts):
        levels = {
            name: level + rng.normal(0, start_sd) * (0.01 if name in {"T2", "T4"} else 1) + drift * block / starts
            for name in TYPICAL
        }
        for number in range(trials):
            values = {name: float(TYPICAL[name] * np.exp(levels[name] + rng.normal(0, sds[name]))) for name in TYPICAL}
            index = block * trials + number
            fails = number >= trials - failures
            made.append(failed_trial(index, block=block) if fails else trial(index, values, block=block))
    return trial_set(made, **changes)
