"""Use of this host's calibration in a run."""

from __future__ import annotations

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.judge.baseline.key import MetricNoise, encode_calibration
from pytest_ldos.measure.trial.artifacts import read_trials
from tests.builders.calibrations import calibration_of

FAST = ("--ldos-trials=10", "--ldos-warmup=0")
SLOWER = "noisy(2, planning=3.0)"


@pytest.fixture
def baseline(record, project):
    """The file of a baseline that was just recorded."""
    record(*FAST)
    (file,) = project.path.glob(".ldos/baselines/*/*/baseline.json")
    return file


def calibration_beside(baseline, run_sd):
    """Text of a calibration in which runs differ by so much in planning."""
    trials = read_trials(baseline)
    noise = MetricNoise(trial_sd=0.05, start_sd=0.05, start_df=7, run_sd=run_sd, run_df=7, floor=0.05)
    return encode_calibration(
        calibration_of(
            {"T1": noise, "T1mean": noise, "T4": noise}, stack_kind=trials.stack_kind, fingerprint=trials.fingerprint
        )
    )


@pytest.mark.acceptance
def test_known_variation_between_runs_is_no_regression(run, baseline):
    """The same run is red without the calibration (`test_verdicts`)."""
    baseline.with_name("baseline.calibration.json").write_text(calibration_beside(baseline, 0.4))
    result = run("-v", *FAST, stack=SLOWER)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*calibration: .ldos/*baseline.calibration.json (8 starts, 64 trials, 2026-01-01T*)*"])


def test_unreadable_calibration_makes_the_run_invalid(run, baseline):
    baseline.with_name("baseline.calibration.json").write_text("{")
    result = run(*FAST, stack="noisy(2)")
    assert result.ret == exit_codes.INVALID
    result.stdout.fnmatch_lines(["*baseline: invalid*", "*the calibration cannot be read: *is no JSON*"])
    assert "Traceback" not in result.stdout.str()


@pytest.mark.acceptance
def test_calibration_of_another_host_is_reported_and_not_used(run, baseline):
    other = baseline.parents[1] / "other_host"
    other.mkdir()
    (other / "baseline.calibration.json").write_text(calibration_beside(baseline, 0.4))
    result = run(*FAST, stack=SLOWER)
    assert result.ret == exit_codes.REGRESSED
    result.stdout.fnmatch_lines(
        ["*not calibrated: there is a calibration of host class other_host, which is not used*"]
    )
