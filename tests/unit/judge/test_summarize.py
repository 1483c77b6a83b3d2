"""Summaries of a run: medians as measured, and locations of a sweep's cells."""

from __future__ import annotations

import dataclasses
import math

import pytest

from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.comparison import locate
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Judged, judge_only
from pytest_ldos.judge.summary import success_interval
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.model import WAITED_FOR_OTHERS, Measurement
from tests.builders.trials import noisy_set

T1 = METRICS["T1"].description


def waiting(seed: int, waited_ms: float):
    """Trials whose planner waited for other processes, which the verdict removes from T1."""
    made = noisy_set(seed, n=20, cv=0.02)

    def slowed(trial):
        found = trial.measurements["T1"]
        value = found.number + waited_ms
        changed = Measurement(value, {**found.details, WAITED_FOR_OTHERS: waited_ms}, found.source)
        return dataclasses.replace(trial, measurements={**trial.measurements, "T1": changed})

    return dataclasses.replace(made, trials=tuple(map(slowed, made.trials)), session="one")


def test_median_ratio_is_of_the_values_as_measured():
    head, base = waiting(1, 30.0), waiting(2, 0.0)
    result = decide(head, base, Policy())
    judged = Judged(head=head, result=result, own=result, base=base)
    assert result.comparison("T1").verdict is Verdict.PASSED
    shown, stored = judged.head_summaries["T1"].median, judged.base_summaries["T1"].median
    assert judged.median_ratio(T1) == pytest.approx(shown / stored)
    assert judged.median_ratio(T1) > 2


def test_median_ratio_needs_a_base():
    assert judge_only(noisy_set(1), Policy()).median_ratio(T1) is None


def test_location_with_a_ratio_to_a_reference():
    twice = locate(T1, noisy_set(1, factors={"T1": 2.0}), noisy_set(2))
    assert twice.ratio_low < 2.0 < twice.ratio_high
    assert twice.low < twice.median < twice.high


def test_location_of_mostly_failed_trials_has_no_median():
    found = locate(T1, noisy_set(1, failures=8), None)
    assert (found.median, found.ratio, found.values) == (None, None, 10)


def test_interval_of_the_success_rate():
    low, high = success_interval([False] * 9 + [True])
    assert low < 0.9 < high <= 1
    assert math.isclose(success_interval([False] * 10)[1], 1.0)
