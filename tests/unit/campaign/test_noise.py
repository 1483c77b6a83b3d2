"""Estimates of a host's noise from starts."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from pytest_ldos.base.series import Missing
from pytest_ldos.campaign.noise import LEAST_FLOOR, adjust, choose_floor, learn_noise, starts_of
from pytest_ldos.measure.metrics.catalogue import METRICS
from tests.builders.starts import TRIAL_SD, measured_run
from tests.builders.trials import measured


def learned(*runs):
    return learn_noise(runs[0], starts_of(runs))


def with_value(trials, name, value_of):
    """Maps the value of one metric in each trial; ``None`` keeps it."""
    changed = []
    for each in trials.trials:
        value = value_of(each)
        found = each.measurements if value is None else {**each.measurements, name: measured(name, value)}
        changed.append(dataclasses.replace(each, measurements=found))
    return dataclasses.replace(trials, trials=tuple(changed))


def test_known_components_are_recovered():
    noise = learned(*(measured_run(seed, starts=20, trials=10, start_sd=0.05) for seed in range(3)))
    assert set(noise) == set(METRICS) & set(noise) >= set(TRIAL_SD)
    for name in ("T1", "T3", "T5"):
        assert noise[name].trial_sd == pytest.approx(TRIAL_SD[name], rel=0.1)
        assert noise[name].start_sd == pytest.approx(0.05, rel=0.4)
        assert noise[name].start_df == 57
    assert noise["T2"].trial_sd == pytest.approx(0.001, rel=0.1)


def test_covariates_are_removed_like_in_the_gate():
    plain = measured_run(1)
    rng = np.random.default_rng(1)
    factors = [float(np.exp(rng.normal(0, 0.3))) for _ in plain.trials]
    slowed = dataclasses.replace(
        plain,
        trials=tuple(
            dataclasses.replace(
                each,
                cpu_work_ns=round(1_300_000 * factor),
                measurements={**each.measurements, "T1": measured("T1", each.measurements["T1"].number * factor)},
            )
            for each, factor in zip(plain.trials, factors, strict=True)
        ),
    )
    assert learned(slowed)["T1"].trial_sd == pytest.approx(learned(plain)["T1"].trial_sd, rel=0.05)


def test_differences_between_goals_are_no_noise():
    plain = measured_run(1)
    trials = tuple(
        dataclasses.replace(
            each,
            goal="far",
            measurements={**each.measurements, "T1": measured("T1", 3 * each.measurements["T1"].number)},
        )
        if each.index % 2
        else each
        for each in plain.trials
    )
    assert learned(dataclasses.replace(plain, trials=trials))["T1"].trial_sd == pytest.approx(0.1, rel=0.25)


def test_covariate_is_adjusted_within_goals():
    """Distant goals have longer plans but shorter planning times, which is a property of the goals."""
    rng = np.random.default_rng(1)

    def with_plans(trials, *, in_goals):
        made = []
        for each in trials.trials:
            chance = float(np.exp(rng.normal(0, 0.2)))
            goal_factor, plan_factor = (0.5, 2.0) if in_goals and each.index % 2 else (1.0, 1.0)
            value = each.measurements["T4"].number * chance * goal_factor
            changes = {"plan_duration_ns": round(each.plan_duration_ns * chance * plan_factor)}
            changes["measurements"] = {**each.measurements, "T4": measured("T4", value)}
            made.append(dataclasses.replace(each, goal="far" if each.index % 2 else "near", **changes))
        return dataclasses.replace(trials, trials=tuple(made))

    plain = measured_run(1)
    alike, in_goals_sd = (learned(with_plans(plain, in_goals=each))["T4"].trial_sd for each in (False, True))
    assert in_goals_sd == pytest.approx(alike, rel=0.05)
    assert in_goals_sd == pytest.approx(learned(plain)["T4"].trial_sd, rel=0.25)


def test_failed_trials_are_left_out():
    noise = learned(measured_run(1, failures=2))
    assert noise["T1"].trial_sd == pytest.approx(0.1, rel=0.3)
    assert all(math.isfinite(value) for each in noise.values() for value in vars(each).values())


def test_metric_missing_in_some_starts():
    runs = measured_run(1)
    lacking = with_value(runs, "T5", lambda each: Missing("no simulator") if each.block < 5 else None)
    assert learned(lacking)["T5"].start_df == 2
    without = with_value(runs, "T5", lambda each: Missing("no simulator") if each.block < 7 else None)
    assert "T5" not in learned(without)
    assert "T1" in learned(without)


def test_identical_values_give_the_smallest_floor():
    noise = learned(with_value(measured_run(1), "T1", lambda each: 14.0))["T1"]
    assert (noise.trial_sd, noise.start_sd, noise.run_sd) == (0, 0, 0)
    assert noise.floor == LEAST_FLOOR


def test_values_around_zero_are_compared_by_differences():
    around = with_value(measured_run(1), "T2x", lambda each: each.measurements["T2x"].number - 20.0)
    negative = with_value(around, "T2x", lambda each: -1.0 if each.index == 0 else None)
    assert learned(negative)["T2x"].trial_sd > learned(measured_run(1))["T2x"].trial_sd
    assert all(np.isfinite(values).all() for values in adjust(METRICS["T2x"], negative, starts_of([negative])))


@pytest.mark.parametrize(
    ("run_sd", "largest", "floor"),
    [
        (0.0, 0.0, LEAST_FLOOR),
        (0.001, 0.002, LEAST_FLOOR),
        (0.002, 0.008, math.expm1(3 * math.sqrt(2) * 0.008)),
        (0.0, 0.05, 0.05),
        (0.02, 0.05, 0.05),
        (0.06, 0.1, math.expm1(math.sqrt(2) * 0.06)),
    ],
)
def test_the_floor(run_sd, largest, floor):
    assert choose_floor(run_sd=run_sd, largest_run_sd=largest) == pytest.approx(floor)


def test_floor_is_finite_for_any_noise():
    assert math.isfinite(choose_floor(run_sd=1e6, largest_run_sd=1e9))
