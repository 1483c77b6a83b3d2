"""Rounds of a study as trials: storage and comparison like an arm's."""

from __future__ import annotations

import dataclasses
import random

from pytest_ldos.base.series import CENSORED
from pytest_ldos.campaign.watching import to_trials
from pytest_ldos.instruments.study import Round
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide, judge_alone
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.artifacts import decode_trials, encode_trials
from pytest_ldos.measure.trial.record import to_series
from tests.builders.studies import HALF_TRIP, RATE, study

POLICY = Policy(metrics={HALF_TRIP.name, RATE.name})


def around(median: float, count: int, seed: int) -> list[float]:
    chance = random.Random(seed)
    return [median * chance.uniform(0.97, 1.03) for _ in range(count)]


def test_rounds_round_trip(tmp_path):
    trials = to_trials(study(), commit="abc")
    assert decode_trials(encode_trials(trials), tmp_path / "trials.json") == trials


def test_baseline_is_separate_from_arms():
    key = BaselineKey.of(to_trials(study(), commit="abc"))
    assert (key.stack, key.scenario) == ("middleware-embedded", "steady")


def test_equal_rounds_pass_and_slower_ones_regress():
    base = to_trials(study(around(10, 20, 1)), commit="abc")
    same = decide(to_trials(study(around(10, 20, 2)), commit="def"), base, POLICY)
    slower = decide(to_trials(study(around(13, 20, 3)), commit="def"), base, POLICY)
    assert same.verdict is Verdict.PASSED
    assert slower.verdict is Verdict.REGRESSED
    assert {each.metric for each in slower.comparisons if each.verdict is Verdict.REGRESSED} == {"half_p50", "rate"}


def test_round_without_result_is_a_failure_for_the_gate():
    rounds = (*study().rounds, Round(case="1 KiB", block=0, failure="no peer answered"))
    trials = to_trials(study(rounds=rounds), commit="abc")
    assert trials.successes == 3
    assert judge_alone(trials, POLICY).verdict is Verdict.REGRESSED


def test_failed_round_is_censored_if_the_quantity_requires_it():
    rounds = (Round(case="1 KiB", block=0, failure="no peer answered"),)
    trials = to_trials(study(rounds=rounds), commit="abc")
    assert to_series(trials, HALF_TRIP).values == ()
    cut_short = dataclasses.replace(HALF_TRIP, censored_by_failure=True)
    assert to_series(trials, cut_short).values == (CENSORED,)


def test_rounds_of_other_cases_are_not_compared():
    base = to_trials(study(around(10, 20, 1)), commit="abc")
    other = [Round(case="1 MiB", block=0, values=dict(each.values)) for each in study(around(30, 20, 2)).rounds]
    result = decide(to_trials(study(rounds=tuple(other)), commit="def"), base, POLICY)
    assert result.verdict is Verdict.INCONCLUSIVE
