"""Metrics of paths, topics and processes in the gate: changes are found, and counts from zero are not required."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.base.ros2 import BUILT_IN_PATHS
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import GateResult, decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.declared import declare
from pytest_ldos.measure.metrics.model import Measurement
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.metrics import parse_metrics
from tests.builders.trials import noisy_set

(MISSES, RATE) = map(declare, parse_metrics(["path:state feedback:misses", "rate:/scan"], BUILT_IN_PATHS))


def having(metric, values, seed) -> TrialSet:
    trials = noisy_set(seed, n=len(values))
    changed = tuple(
        dataclasses.replace(trial, measurements={**trial.measurements, metric.name: Measurement(value)})
        for trial, value in zip(trials.trials, values, strict=True)
    )
    return dataclasses.replace(trials, trials=changed, metrics=(*trials.metrics, metric.description))


def compare(metric, head, base, **policy) -> GateResult:
    allowed = Policy(metrics={*Policy().metrics, metric.name}, **policy)
    return decide(having(metric, head, 2), having(metric, base, 1), allowed)


NONE = [0.0] * 12
FEW = [0.0] * 9 + [1.0] * 3


@pytest.mark.parametrize(
    ("head", "base", "verdict"),
    [
        (NONE, NONE, Verdict.PASSED),
        ([3.0, 4.0, 5.0] * 4, NONE, Verdict.REGRESSED),
        (NONE, [3.0, 4.0, 5.0] * 4, Verdict.IMPROVED),
        (FEW, NONE, Verdict.NOT_JUDGED),
    ],
)
def test_misses_are_compared_from_zero_on(head, base, verdict):
    assert compare(MISSES, head, base).comparison(MISSES.name).verdict is verdict


def test_count_from_zero_is_inconclusive_only_if_required():
    assert compare(MISSES, FEW, NONE).verdict is Verdict.PASSED
    assert compare(MISSES, FEW, NONE, required=(MISSES.name,)).verdict is Verdict.INCONCLUSIVE


def test_a_rate_regresses_downwards():
    usual = [20.0, 20.1, 19.9, 20.05] * 3
    slower = [0.9 * each for each in usual]
    assert compare(RATE, slower, usual).comparison(RATE.name).verdict is Verdict.REGRESSED
    assert compare(RATE, usual, slower).comparison(RATE.name).verdict is Verdict.IMPROVED
    assert compare(RATE, usual[::-1], usual).comparison(RATE.name).verdict is Verdict.PASSED
