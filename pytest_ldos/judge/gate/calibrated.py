"""Applies the host's calibration, if there is one, to a policy and to its result."""

from __future__ import annotations

import dataclasses

from pytest_ldos.judge.baseline.calibration_store import Calibrated, CalibrationLookup, UnreadableCalibration
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import CalibrationUnreadable
from pytest_ldos.judge.gate.verdict import Verdict, worst
from pytest_ldos.judge.gate.weight import by_weight


def with_calibration(policy: Policy, lookup: CalibrationLookup) -> Policy:
    """The policy with the calibration found for this host; unchanged if there is none."""
    if not isinstance(lookup, Calibrated):
        return policy
    known = {**policy.calibrations, lookup.calibration.scenario: lookup.calibration}
    return dataclasses.replace(policy, calibrations=known)


def doubted(result: GateResult, lookup: CalibrationLookup) -> GateResult:
    """The result, made `invalid` if the calibration exists but cannot be read."""
    if not isinstance(lookup, UnreadableCalibration):
        return result
    reasons = by_weight([*result.reasons, CalibrationUnreadable(lookup.reason)])
    return dataclasses.replace(
        result, verdict=worst([result.verdict, Verdict.INVALID]), reasons=reasons, more_trials_because=()
    )
