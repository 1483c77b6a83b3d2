"""Comparisons by starts: evidence of several starts, and limits of one."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from pytest_ldos.base.series import Better, Series
from pytest_ldos.judge.baseline.key import MetricNoise
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.contrast import contrast
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.latency import T1
from tests.builders.calibrations import calibration_of
from tests.builders.trials import in_starts, noisy_set, times_three

UNKNOWN = {"stack_kind": "of nobody"}
"""A kind of stack that the record of unchanged runs does not have."""


def noise_of(**changes):
    known = {"trial_sd": 0.05, "start_sd": 0.04, "start_df": 1e6, "run_sd": 0.05, "run_df": 1e6, "floor": 0.05}
    return Policy(calibrations={"baseline": calibration_of({"T1": MetricNoise(**{**known, **changes})})})


def compared(per_start, policy=None, *, n=30, factor=1.0, session="", spoil=lambda trials: trials):
    base, head = (
        in_starts(spoil(noisy_set(seed, n=n, factors={"T1": size}, session=session, **UNKNOWN)), per_start)
        for seed, size in ((1, 1.0), (2, factor))
    )
    return decide(head, base, policy or Policy()).comparison("T1")


def width(comparison):
    return math.log(comparison.high / comparison.low)


def test_the_share_of_the_starts_falls_with_their_number():
    """Known deviations of 4 % between starts and 3 % that runs add: 2 · 3² + 4² · (1/k + 1/k)."""
    alone = width(compared(30, noise_of(start_sd=0.0, run_sd=0.0)))
    added = {per_start: width(compared(per_start, noise_of())) ** 2 - alone**2 for per_start in (30, 10, 3, 1)}
    expected = {per_start: 2 * 0.03**2 + 0.04**2 * 2 * per_start / 30 for per_start in added}
    for per_start, found in added.items():
        assert found / added[30] == pytest.approx(expected[per_start] / expected[30], rel=0.01)


def test_interleaved_versions_have_no_runs_between_them():
    near, far = (compared(5, noise_of(run_sd=run_sd), session="one") for run_sd in (0.04, 0.5))
    assert width(near) == pytest.approx(width(far))


@pytest.mark.parametrize("per_start", [30, 2])
@pytest.mark.parametrize("policy", [Policy(), noise_of(start_sd=0.03, start_df=7, run_sd=0.03, run_df=0)])
def test_starts_of_one_run_do_not_show_variation_between_runs(policy, per_start):
    assert compared(per_start, policy, factor=1.1).verdict is not Verdict.REGRESSED
    assert compared(per_start, policy, factor=3.0).verdict is Verdict.REGRESSED
    assert compared(per_start, noise_of(run_sd=0.05), factor=1.5).verdict is Verdict.REGRESSED


def test_calibration_of_several_runs_supports_a_single_start():
    policy = noise_of(start_sd=0.01, start_df=20, run_sd=0.012, run_df=8)
    assert compared(30, policy, factor=1.2).verdict is Verdict.REGRESSED
    assert compared(30, policy).verdict is Verdict.PASSED


def test_each_run_of_a_calibration_replaces_a_part_of_the_assumption():
    one, three, five = (width(compared(30, noise_of(start_df=7, run_sd=0.045, run_df=runs - 1))) for runs in (1, 3, 5))
    assert one > three > five


def test_equal_starts_of_one_calibrated_run_do_not_bound_other_runs():
    """Starts of one night may be alike where nights are not."""
    alike = {"start_sd": 0.002, "start_df": 7, "run_sd": 0.002}
    without, one, five = (
        width(compared(2, each)) for each in (None, noise_of(**alike, run_df=0), noise_of(**alike, run_df=4))
    )
    assert five < 0.6 * without < one


@pytest.mark.parametrize("session", ["", "one"])
@pytest.mark.parametrize("slow", [{"every": 10}, {"until": 2}], ids=["one in ten", "first two"])
def test_few_outliers_do_not_hide_a_change(session, slow):
    def spoil(trials):
        return times_three(trials, "T1", **slow)

    found = compared(5, factor=1.3, session=session, spoil=spoil)
    assert found.verdict is Verdict.REGRESSED
    assert found.floor < 0.1
    assert compared(5, session=session, spoil=spoil).verdict is not Verdict.REGRESSED


@pytest.mark.parametrize("per_start", [4, 10])
def test_two_outliers_in_ten_keep_the_interval(per_start):
    """Without winsorising, the interval would reach up to the extremes: only 500 % would be significant."""
    base = in_starts(times_three(noisy_set(1, n=10), "T1", until=2), per_start)
    found = decide(in_starts(noisy_set(2, n=10), per_start), base, Policy()).comparison("T1")
    assert found.mde < 0.8


def planning_times(seed, *, version, start_sd=0.0, factor=1.0):
    """300 planning times that vary by 37 %, as those of MoveIt's problems, in ten starts of one version."""
    random = np.random.default_rng(seed)
    of_starts = random.normal(0, start_sd, 10).repeat(30)
    values = 30 * factor * np.exp(of_starts + random.normal(0, 0.37, 300))
    return Series(
        name="T1",
        unit="ms",
        better=Better.LOWER,
        values=tuple(values.tolist()),
        strata=tuple(f"problem {number}" for number in range(30)) * 10,
        blocks=tuple(2 * start + version for start in range(10) for _ in range(30)),
        trials=tuple(range(300)),
        covariates=dict.fromkeys(T1.adjust_for, (math.nan,) * 300),
    )


def planning_shifts(*, runs, tail=0.025, **changes):
    for seed in range(runs):
        head = planning_times(2 * seed, version=1, **changes)
        base = planning_times(2 * seed + 1, version=0, **{**changes, "factor": 1.0})
        yield contrast(T1, head, base, is_interleaved=True).shift(tail=tail)


def test_randomness_of_plans_is_not_taken_for_a_difference_of_starts():
    """Half of the variation of 37 % as that of starts would give an interval of ± 14 %."""
    assert statistics.median(each.high - each.low for each in planning_shifts(runs=5)) < 2 * 0.08


@pytest.mark.parametrize("start_sd", [0.05, 0.2])
def test_starts_that_differ_are_no_change_of_planning_times(start_sd):
    """Two of 40 pairs of equal versions are expected beyond 95 %; more than five are by chance in 1 of 70 cases."""
    beyond = [shift.low > 0 or shift.high < 0 for shift in planning_shifts(runs=40, start_sd=start_sd)]
    assert sum(beyond) <= 5


def test_slower_planning_is_found_among_random_plans():
    assert sum(shift.low > 0 for shift in planning_shifts(runs=20, factor=1.15, tail=0.005)) >= 17
