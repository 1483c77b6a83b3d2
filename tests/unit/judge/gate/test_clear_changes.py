"""A change far beyond all noise is found, even by few trials if starts differ by more than trials."""

from __future__ import annotations

import math

import pytest

from pytest_ldos.judge.baseline.key import MetricNoise
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Verdict
from tests.builders.calibrations import calibration_of
from tests.builders.trials import in_starts, noisy_set


def calibrated(run_sd, run_df):
    noise = MetricNoise(trial_sd=0.05, start_sd=run_sd, start_df=run_df, run_sd=run_sd, run_df=run_df, floor=0.05)
    known = calibration_of({"T1": noise})
    return Policy(calibrations={"baseline": known})


@pytest.mark.parametrize("trials", [8, 30])
@pytest.mark.parametrize(("run_sd", "run_df"), [(0.05, 7.0), (0.1, 7.0), (0.05, 4.0)])
def test_completely_separated_samples(trials, run_sd, run_df):
    """The comparison's own MDE is the measure: three times as much is found."""
    policy = calibrated(run_sd, run_df)
    base = noisy_set(1, n=trials)
    mde = decide(noisy_set(2, n=trials), base, policy).comparison("T1").mde
    head = noisy_set(2, n=trials, factors={"T1": 1 + 3 * mde})
    found = decide(head, base, policy).comparison("T1")
    assert found.verdict is Verdict.REGRESSED
    assert found.low > 1


def unknown_set(seed, **changes):
    """Trials of a kind of stack that the record of unchanged runs does not have."""
    return noisy_set(seed, n=30, stack_kind="of nobody", **changes)


def test_poorly_known_noise_is_inconclusive():
    """Two runs that differ widely: intervals exceed the largest number."""
    head, base = (in_starts(each, 30) for each in (unknown_set(2, factors={"T1": 1.5}), unknown_set(1)))
    found = decide(head, base, calibrated(90.0, 1.0)).comparison("T1")
    assert (found.low, found.high, found.mde) == (0.0, math.inf, math.inf)
    assert found.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("trials", [8, 30])
def test_variation_between_starts_is_not_a_change(trials):
    head, base = (
        in_starts(noisy_set(seed, n=trials, factors={"T1": factor}), trials) for seed, factor in ((2, 1.15), (1, 1))
    )
    assert decide(head, base, calibrated(0.1, 7.0)).comparison("T1").verdict is not Verdict.REGRESSED
