"""Scenarios of one run share its probability of a false alarm."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.judge.gate.budget import metric_shares
from pytest_ldos.judge.gate.decide import decide, decide_run
from pytest_ldos.judge.gate.family import Family
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.metrics.catalogue import METRICS
from tests.builders.trials import noisy_set

POLICY = Policy(scenarios=2)
CERTAIN = noisy_set(1, factors={"T1": 3.0, "T4": 3.0}, name="cpu_load"), noisy_set(2, name="cpu_load")


def test_what_a_regression_was_held_to_is_handed_on():
    doubtful = noisy_set(3, factors={"T3": 1.1}), noisy_set(4)
    alone, family = decide(*doubtful, POLICY), Family()
    assert family.decide(*CERTAIN, POLICY).verdict is Verdict.REGRESSED
    handed_on = family.decide(*doubtful, POLICY).comparison("T3")
    shares = metric_shares(METRICS[each.metric] for each in alone.comparisons)
    assert handed_on.tail == pytest.approx(alone.comparison("T3").tail / (1 - (shares["T1"] + shares["T4"]) / 2))


def test_a_family_says_what_the_whole_run_says():
    pairs = [CERTAIN, (noisy_set(3, factors={"T2x": 1.3}), noisy_set(4))]
    family = Family()
    assert [family.decide(*pair, POLICY) for pair in pairs][-1] == decide_run(pairs, POLICY)[-1]


def test_a_base_that_was_not_measured_well_hands_nothing_on():
    flooded = {"kind": "dds_flood", "shortfall": "the flood reached 2000 of 4000 msg/s", "summary": ""}
    head, base = CERTAIN
    doubtful, family = (noisy_set(3, factors={"T3": 1.1}), noisy_set(4)), Family()
    assert family.decide(head, dataclasses.replace(base, loads=(flooded,)), POLICY).verdict is Verdict.REGRESSED
    assert family.decide(*doubtful, POLICY) == decide(*doubtful, POLICY)


def test_a_scenario_that_passed_leaves_the_next_what_it_had():
    quiet, doubtful = (noisy_set(5), noisy_set(6)), (noisy_set(3, factors={"T3": 1.1}), noisy_set(4))
    family = Family()
    assert family.decide(*quiet, POLICY).verdict is Verdict.PASSED
    assert family.decide(*doubtful, POLICY) == decide(*doubtful, POLICY)
