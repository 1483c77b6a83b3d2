"""Spread, tail and rises within a run: found where they are, and no others."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pytest_ldos.campaign.order import Role, first_blocks
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.reasons import ShapeRegressed
from pytest_ldos.judge.gate.verdict import LateRise, MayHaveChanged, Spread, Tail, Verdict
from pytest_ldos.measure.trial.record import Look
from tests.builders.trials import TYPICAL, trial, trial_set

T1 = TYPICAL["T1"]


def versions(head, base, *, size=2):
    """Interleaved trials of T1 with these logarithms, in blocks of so many."""
    blocks = first_blocks(len(head), size=size)

    def of(role, logs):
        starts = [block.number for block in blocks if block.role is role for _ in block.trials]
        pairs = enumerate(zip(starts, logs, strict=True))
        made = [trial(index, {"T1": T1 * float(np.exp(log))}, block=start) for index, (start, log) in pairs]
        return trial_set(made, session="s", looks=(Look(len(made), len(made)),))

    return of(Role.HEAD, head), of(Role.BASE, base)


def noise(seed, count, deviation=0.08):
    """Normal values whose sample has this very median and spread."""
    values = np.random.default_rng(seed).normal(0, 1, count)
    values -= np.median(values)
    return values * deviation / values.std()


def findings(head, base, **design):
    comparison = decide(*versions(head, base, **design), Policy()).comparison("T1")
    return {type(each.shape.aspect): each for each in comparison.findings}


def test_equal_versions_change_in_no_aspect():
    found = findings(noise(1, 80), noise(2, 80))
    assert set(found) == {Spread, Tail, LateRise}
    assert not any(each.is_regressed or each.is_suspect for each in found.values())


def test_larger_spread_at_equal_median_is_a_regression():
    pair = versions(noise(1, 30, 0.32), noise(2, 30))
    result = decide(*pair, Policy())
    comparison = result.comparison("T1")
    assert comparison.verdict is result.verdict is Verdict.REGRESSED
    assert comparison.location is not Verdict.REGRESSED
    (reason,) = (each for each in result.reasons if isinstance(each, ShapeRegressed))
    spread = reason.shape.aspect
    assert isinstance(spread, Spread)
    assert spread.head / spread.base == pytest.approx(4, rel=0.3)


def test_reduced_spread_is_not_a_regression():
    assert not findings(noise(1, 30), noise(2, 30, 0.32))[Spread].is_regressed


def test_a_spread_below_the_floor_is_not_reported():
    found = findings(noise(1, 30, 0.012), noise(2, 30, 0.003))[Spread]
    assert found.shape.p_value <= found.tail
    assert not found.is_regressed


def test_single_outlier_is_not_a_spread():
    head = noise(1, 30)
    head[7] = np.log(20.0)
    assert not findings(head, noise(2, 30))[Spread].is_suspect


def test_slow_start_counts_once_regardless_of_its_trials():
    """Two of nine starts are slow: eight of 36 trials, which would be significant one by one."""
    head = noise(1, 36)
    head[4:8] += np.log(3.0)
    head[20:24] += np.log(3.0)
    assert findings(head, noise(2, 36), size=4)[Spread].shape.p_value > 0.01


def test_two_kinds_of_starts_are_not_a_spread():
    """Half of head's starts are slow, which may be chance; around its own median, between both kinds, all are far."""
    head = noise(1, 30, 0.02) + 0.3 * (np.arange(30) < 16)
    head[14:16] = 0.15
    assert findings(head, noise(2, 30, 0.02))[Spread].shape.p_value > 1e-4


def test_possibly_larger_spread_requests_more_trials():
    head, base = versions(noise(1, 30, 0.16), noise(3, 30, 0.06))
    comparison = decide(head, base, Policy(relevant_effect=1.0, scenarios=20)).comparison("T1")
    (found,) = (each for each in comparison.findings if isinstance(each.shape.aspect, Spread))
    assert found.is_suspect
    assert not found.is_regressed
    assert comparison.more_trials_because == MayHaveChanged("T1", found.shape.aspect)


def test_tail_is_found_with_enough_trials():
    head, base = noise(1, 100), noise(2, 100)
    head[::5] += np.log(3.0)
    found = findings(head, base)[Tail]
    assert found.is_regressed
    assert found.shape.aspect.head == pytest.approx(0.2, abs=0.05)
    assert found.shape.aspect.base < 0.06
    assert Tail not in findings(noise(1, 30), noise(2, 30))


def test_a_rise_in_the_middle_of_the_run_is_found_with_its_trial():
    head = noise(1, 30)
    head[20:] += np.log(2.0)
    found = findings(head, noise(2, 30))[LateRise]
    assert found.is_regressed
    assert found.shape.aspect.from_trial in {19, 21, 23}
    assert found.shape.aspect.ratio == pytest.approx(2.0, rel=0.2)


def test_rise_in_both_versions_is_attributed_to_the_machine():
    head, base = noise(1, 30), noise(2, 30)
    head[20:] += np.log(2.0)
    base[20:] += np.log(2.0)
    assert not findings(head, base)[LateRise].is_suspect


def test_fall_in_the_middle_is_not_a_regression():
    head = noise(1, 30)
    head[20:] -= np.log(2.0)
    assert not findings(head, noise(2, 30))[LateRise].is_suspect


def test_few_starts_or_trials_are_not_tested():
    assert not findings(noise(1, 10), noise(2, 10))
    assert not findings(noise(1, 40), noise(2, 40), size=5)


def test_versions_measured_one_after_the_other_are_not_tested():
    head, base = versions(noise(1, 40), noise(2, 40))
    comparison = decide(dataclasses.replace(head, session=""), base, Policy()).comparison("T1")
    assert not comparison.findings


def test_aspects_are_tested_from_the_first_look_on():
    """So that shares of the probability of error are the same at each."""
    head, base = versions(noise(1, 10), noise(2, 10))
    head, base = (dataclasses.replace(each, last_look=Look(30, 30)) for each in (head, base))
    comparison = decide(head, base, Policy()).comparison("T1")
    assert {type(each.shape.aspect) for each in comparison.findings} == {Spread, LateRise}
