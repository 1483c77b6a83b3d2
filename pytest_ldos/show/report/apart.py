"""Words for what cannot be known of versions that were measured at different times."""

from __future__ import annotations

from pytest_ldos.base.units import counted
from pytest_ldos.judge.baseline.calibration import ENOUGH_RUNS
from pytest_ldos.judge.baseline.calibration_store import Calibrated, CalibrationLookup
from pytest_ldos.measure.trial.record import TrialSet


def describe_apart(head: TrialSet, base: TrialSet, calibration: CalibrationLookup | None) -> str:
    """Tells that the variation between times is not known here, and that the verdict assumes it.

    Empty for interleaved versions, and where a calibration has seen enough times.
    """
    runs = calibration.calibration.runs if isinstance(calibration, Calibrated) else 0
    if head.is_interleaved_with(base) or runs >= ENOUGH_RUNS:
        return ""
    starts = [len({trial.block for trial in trials.trials}) for trials in (head, base)]
    return (
        f"measured at different times, this version in {counted(starts[0], 'start')} and the baseline in {starts[1]}: "
        f"how much equal versions then differ is not known here ({_seen(runs)}) and assumed; "
        "interleaved versions need not know it (--ldos-base)"
    )


def _seen(runs: int) -> str:
    if not runs:
        return "no calibration"
    return f"{counted(runs, 'run')} of calibration, {ENOUGH_RUNS} at different times would tell"
