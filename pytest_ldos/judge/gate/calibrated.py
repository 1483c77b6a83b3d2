"""Applies the host's calibration, if there is one, to a policy and to its result."""

from __future__ import annotations

import dataclasses

from pytest_ldos.judge.baseline.calibration_store import (
    Calibrated,
    CalibrationLookup,
    Uncalibrated,
    UnreadableCalibration,
)
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict, worst


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
    reasons = (*result.reasons, f"the calibration cannot be read: {lookup.reason}")
    return dataclasses.replace(result, verdict=worst([result.verdict, Verdict.INVALID]), reasons=reasons, undecided=())


def describe_calibration(lookup: CalibrationLookup) -> tuple[str, ...]:
    """Describes the calibration in use, or one that is not used; empty if the scenario was never calibrated."""
    if isinstance(lookup, Calibrated):
        made = lookup.calibration
        return (f"calibration: {lookup.file} ({made.starts} starts, {made.trials} trials, {made.made_at})",)
    return (lookup.reason,) if isinstance(lookup, Uncalibrated) and lookup.reason else ()
