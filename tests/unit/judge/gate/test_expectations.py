"""Deadlines that a scenario expects its paths to keep."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.base.series import Missing, Value
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import judge_alone
from pytest_ldos.judge.gate.reasons import FoundAny, MissedDeadline, NoTrials, Untrusted
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.catalogue import catalogue_of
from pytest_ldos.measure.metrics.evidence import IN_RUNS, RUNS, RUNS_WITH
from pytest_ldos.measure.metrics.extract import Kept
from pytest_ldos.measure.metrics.model import PART, Measurement
from pytest_ldos.scenario.metrics import DeadlineSpec, parse_metrics
from tests.builders.trials import noisy_set


def expecting(counts, *, share: float = 0.99, path: str = "planning"):
    """Ten or so trials, of which each passed the path so often, and kept its deadline so often."""
    trials = noisy_set(1, n=len(counts))
    spec = dataclasses.replace(trials.spec, deadlines=(DeadlineSpec(path=path, ms=10, share=share),))
    kept = [
        dataclasses.replace(trial, deadlines={path: Kept(*count)})
        for trial, count in zip(trials.motions, counts, strict=True)
    ]
    return dataclasses.replace(trials, spec=spec, trials=tuple(kept))


def test_met_deadlines_pass():
    assert judge_alone(expecting([(1, 1)] * 10), Policy()).verdict is Verdict.PASSED
    assert judge_alone(expecting([(200, 199)] * 10), Policy()).verdict is Verdict.PASSED


def test_phase_too_long_in_some_trials_misses_its_deadline():
    result = judge_alone(expecting([(1, 1)] * 7 + [(1, 0)] * 3), Policy())
    assert result.verdict is Verdict.REGRESSED
    assert result.reasons[0] == MissedDeadline("planning", 10, 0.99, 10, 7, 7, 10)


def test_one_miss_in_ten_is_within_chance_of_a_lower_share():
    assert judge_alone(expecting([(1, 1)] * 9 + [(1, 0)], share=0.9), Policy()).verdict is Verdict.PASSED


def test_trials_not_passages_are_counted_for_frequent_paths():
    late = (200, 190)
    assert judge_alone(expecting([late] * 10), Policy()).verdict is Verdict.REGRESSED
    assert judge_alone(expecting([late] * 3 + [(200, 200)] * 7), Policy()).verdict is Verdict.PASSED


@pytest.mark.parametrize("counts", [[(0, 0)] * 10, []])
def test_path_without_passages_misses_its_deadline(counts):
    result = judge_alone(expecting(counts), Policy())
    assert result.verdict in {Verdict.REGRESSED, Verdict.INVALID}
    assert isinstance(result.reasons[0], MissedDeadline if counts else NoTrials)


def test_trial_with_an_unread_trace_meets_no_deadline():
    trials = expecting([(1, 1)] * 10)
    unread = tuple(dataclasses.replace(trial, deadlines={}) for trial in trials.trials)
    result = judge_alone(dataclasses.replace(trials, trials=unread), Policy())
    assert (result.reasons[0].passages, result.reasons[0].in_time) == (0, 0)


def in_loop(values: list[Value], text: str = "allocations:control loop"):
    """Trials of a hundred cycles with a value of a metric of the control loop each."""
    trials, (spec,) = noisy_set(1, n=len(values)), parse_metrics([text], ())
    (metric,) = catalogue_of((), [spec], built_in={}).values()
    measured = []
    for trial, value in zip(trials.motions, values, strict=True):
        found = Measurement(value)
        if isinstance(value, float):
            details = {IN_RUNS: 100 * value, RUNS: 100.0, RUNS_WITH: min(100.0, 100 * value)}
            found = Measurement(value, {**details, **({f"{PART}update() (lib.so)": value} if value else {})})
        measured.append(dataclasses.replace(trial, measurements={**trial.measurements, spec.name: found}))
    return dataclasses.replace(trials, trials=tuple(measured), metrics=(*trials.metrics, metric.description))


def test_no_allocation_passes_and_a_single_one_is_red():
    assert judge_alone(in_loop([0.0] * 10), Policy()).verdict is Verdict.PASSED
    result = judge_alone(in_loop([0.0] * 9 + [0.01]), Policy())
    assert result.verdict is Verdict.REGRESSED
    assert result.reasons[0] == FoundAny("allocations_control_loop", 1, 1000, 1, ("update() (lib.so)",))


def test_any_number_is_allowed_if_asked():
    assert judge_alone(in_loop([2.0] * 10, "allocations:control loop:any"), Policy()).verdict is Verdict.PASSED


def test_what_was_not_recorded_is_not_0():
    result = judge_alone(in_loop([Missing("no wrapper")] * 10), Policy())
    assert result.verdict is Verdict.INVALID
    assert result.reasons[0] == Untrusted("allocations_control_loop", 10, 10, "no wrapper")
