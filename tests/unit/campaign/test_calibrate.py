"""Calibrations from measured starts, with their error rates."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.base.errors import CalibrationFailed
from pytest_ldos.base.series import Missing
from pytest_ldos.campaign.calibrate import Proof, calibrate, learn
from pytest_ldos.campaign.noise import Design
from pytest_ldos.judge.gate.case import Policy
from tests.builders.starts import measured_run
from tests.builders.trials import measured, trial_set

PROOF = Proof(effect=0.15, policy=Policy(), counts=(8, 30), draws=20, planted_draws=20)
NOTHING = dataclasses.replace(PROOF, counts=(8,), draws=1, planted_draws=1)
"""For tests of other parts."""


def test_calibration_has_its_basis():
    made = learn([measured_run(1), measured_run(2, started_at="2026-02-02T00:00:00+00:00", commit="later")])
    assert (made.starts, made.trials, made.scenario, made.stack_kind) == (16, 128, "baseline", "embedded")
    assert made.commit == "later"
    assert set(made.metrics) >= {"T1", "T2", "T2x", "T3", "T4", "T5"}


@pytest.mark.acceptance
def test_sufficient_trials_are_suggested_and_tested():
    decided = []
    result = calibrate([measured_run(1)], dataclasses.replace(PROOF, on_decision=lambda: decided.append(1)))
    interleaved = next(each for each in result.suggestions if each.design is Design.INTERLEAVED)
    assert interleaved.by_metric["T2"] == 8
    assert interleaved.by_metric["T1"] == 30
    assert interleaved.trials == 30
    assert 0 < len(decided) <= PROOF.decisions
    planted = {(each.design, each.metric): each for each in result.planted}
    assert planted[Design.INTERLEAVED, "T1"].found.value >= 0.7
    assert len(result.promises) == 4


def test_unreachable_effect():
    result = calibrate([measured_run(1)], dataclasses.replace(PROOF, effect=0.0001, draws=5))
    assert all(each.trials is None for each in result.suggestions)
    assert "T1" in result.suggestions[0].unreachable
    assert result.planted == ()


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (trial_set([]), "nothing was measured"),
        (measured_run(1, starts=1), r"one start was measured(.|\n)*--blocks 8"),
        (measured_run(1, trials=3, failures=3), r"all 24 trials failed \(planning_failed: no joints"),
        (measured_run(1, trials=1), "two trials in one of them"),
    ],
)
def test_insufficient_runs_are_refused(run, message):
    with pytest.raises(CalibrationFailed, match=message):
        learn([run])


def test_failures_few_starts_and_one_run_are_noted():
    notes = " ".join(calibrate([measured_run(1, starts=3, failures=1)], NOTHING).notes)
    assert "3 starts tell little" in notes
    assert "3 of 24 trials failed" in notes
    assert "1 run: for versions measured one after the other, the difference between days is assumed" in notes


def test_missing_or_constant_metric_is_noted():
    run = measured_run(1)
    without = tuple(
        dataclasses.replace(
            each,
            measurements={
                **each.measurements,
                "T5": measured("T5", Missing("no simulator")),
                "T3": measured("T3", 0.1),
            },
        )
        for each in run.trials
    )
    result = calibrate([dataclasses.replace(run, trials=without)], NOTHING)
    assert "T5" not in result.calibration.metrics
    assert "T5 is not calibrated: no simulator" in result.notes
    assert "T3 never varied: a deviation of 0 is learned" in result.notes
