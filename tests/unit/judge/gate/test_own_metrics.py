"""Metrics of a user's own are judged like ours."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.series import Better, Invalid
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.reasons import LostMetric, Moved, OtherDirection, OtherUnit, Untrusted
from pytest_ldos.judge.gate.verdict import Verdict
from tests.builders.own_metric import GRIP_RATE, with_own
from tests.builders.trials import noisy_set

POLICY = Policy()


def test_an_own_metric_is_judged_in_its_direction():
    base = with_own(noisy_set(1, n=20))
    same = decide(with_own(noisy_set(2, n=20)), base, POLICY)
    assert same.comparison("grip_rate").verdict is Verdict.PASSED
    slower = decide(with_own(noisy_set(2, n=20), 0.6), base, POLICY)
    assert slower.verdict is Verdict.REGRESSED
    (moved,) = (each.comparison for each in slower.reasons if isinstance(each, Moved))
    assert (moved.metric, moved.title) == ("grip_rate", "rate of the gripper")
    assert moved.ratio == pytest.approx(0.604, abs=0.001)
    assert decide(with_own(noisy_set(2, n=20), 1.6), base, POLICY).comparison("grip_rate").verdict is Verdict.IMPROVED


def test_own_metric_missing_on_one_side():
    gone = decide(noisy_set(2), with_own(noisy_set(1)), POLICY)
    assert LostMetric("grip_rate", "no trial measured it") in gone.reasons
    new = decide(with_own(noisy_set(2)), noisy_set(1), POLICY)
    assert new.verdict is Verdict.NO_BASELINE
    assert new.comparison("grip_rate") is None


def test_another_metric_of_the_same_name_is_not_compared():
    for changed, why in (
        ({"unit": "ms"}, OtherUnit("grip_rate", "ms", "Hz")),
        ({"better": Better.LOWER}, OtherDirection("grip_rate", Better.LOWER, Better.HIGHER)),
    ):
        head = with_own(noisy_set(2), metric=dataclasses.replace(GRIP_RATE, **changed))
        result = decide(head, with_own(noisy_set(1)), POLICY)
        assert result.verdict is Verdict.NOT_COMPARABLE
        assert result.incomparable["grip_rate"] == why


def test_untrustworthy_own_metric_makes_the_run_invalid():
    head = with_own(noisy_set(2), value=Invalid("grip_rate could not be taken: KeyError: 'x'"))
    result = decide(head, with_own(noisy_set(1)), POLICY)
    assert result.verdict is Verdict.INVALID
    (reason,) = (each for each in result.reasons if isinstance(each, Untrusted))
    assert (reason.metric, reason.first.count("KeyError")) == ("grip_rate", 1)


def test_a_floor_of_an_own_metric():
    head, base = with_own(noisy_set(2, n=20), 0.85), with_own(noisy_set(1, n=20))
    policy = Policy.configured({"floors": {"grip_rate": 0.5}}, scenarios=1, own=["grip_rate"])
    assert decide(head, base, policy).comparison("grip_rate").verdict is Verdict.PASSED
    with pytest.raises(ConfigurationError, match="unknown metric with an effect floor: 'grip_rate'"):
        Policy.configured({"floors": {"grip_rate": 0.5}}, scenarios=1)
