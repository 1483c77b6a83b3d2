"""Interleaved versions with a metric that has no value in a common pair of blocks."""

import dataclasses

from pytest_ldos.base.series import Missing
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from tests.builders.trials import failed_trial, measured, noisy_set


def interleaved_set(seed, *, failed):
    """Two blocks of five trials; only the failed trial has T2x, which is infinite."""
    trials = noisy_set(seed, n=10).trials
    unknown = measured("T2x", Missing("no marker tells how long the planned trajectory lasts"))
    known = [dataclasses.replace(each, measurements={**each.measurements, "T2x": unknown}) for each in trials]
    known[failed] = failed_trial(failed)
    blocked = tuple(dataclasses.replace(each, block=2 * (each.index // 5) + seed % 2) for each in known)
    return dataclasses.replace(noisy_set(seed, n=10), session="one", trials=blocked)


def test_unpaired_value_is_left_out_and_the_others_are_compared():
    result = decide(interleaved_set(1, failed=0), interleaved_set(2, failed=9), Policy())
    assert result.comparison("T2x") is None
    assert result.comparison("T1") is not None
