"""The sentence on how much runs at different times differ, which a stored comparison must know."""

from __future__ import annotations

import math
from typing import Final

from pytest_ldos.base.units import counted
from pytest_ldos.judge.baseline.calibration import ENOUGH_RUNS
from pytest_ldos.judge.baseline.calibration_store import Calibrated
from pytest_ldos.judge.baseline.known_runs import KnownRuns
from pytest_ldos.judge.judging import Judged

_NAMED_FIRST: Final = ("T1mean", "T1", "call", "T4")


def describe_apart(judged: Judged) -> str:
    """Knowledge of it; empty for interleaved versions, and where a calibration of enough runs knows it."""
    runs = judged.calibration.calibration.runs if isinstance(judged.calibration, Calibrated) else 0
    if judged.base is None or judged.is_interleaved or runs >= ENOUGH_RUNS:
        return ""
    known = judged.known or KnownRuns()
    if known.between:
        name = next((each for each in _NAMED_FIRST if each in known.between), next(iter(known.between)))
        varies = 100 * math.sqrt(known.between[name].runs.value)
        seen = f"{counted(known.observed, 'run')} in {counted(known.days, 'day')}"
        more = "" if known.observed >= ENOUGH_RUNS else "; each run of an unchanged stack tells more"
        return f"run to run, {name} varies by {varies:.2g} % here: {seen}{more}"
    return (
        "how much runs differ here is not known yet, and taken from other machines: "
        "each run of an unchanged stack tells more (interleaved versions need not know it: --ldos-base)"
    )
