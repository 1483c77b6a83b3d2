"""An accepted change lets through itself up to its size, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.judge.baseline.accepted import SUCCESS_RATE, Accepted
from pytest_ldos.judge.baseline.store import Found
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide
from pytest_ldos.judge.gate.verdict import Verdict, exit_code
from pytest_ldos.judge.judging import Grounds, Screen, judge
from tests.builders.accepted import accepted
from tests.builders.own_metric import GRIP_RATE, with_own
from tests.builders.trials import noisy_set, with_metric
from tests.unit.judge.gate.test_shape import noise, versions

SLOWER, BASE = noisy_set(1, factors={"T1": 1.5}), noisy_set(2)


def decided(head, base, *changes: Accepted):
    return decide(head, base, Policy(accepted={each.metric: each for each in changes}))


def test_accepted_change_is_a_verdict_of_its_own():
    change = accepted("T1", 0.5)
    result = decided(SLOWER, BASE, change)
    comparison = result.comparison("T1")
    assert result.verdict is comparison.verdict is Verdict.ACCEPTED
    assert result.reasons[0] == why.AcceptedChange(comparison, change)
    assert exit_code(result.verdict, strict=True) == 0
    assert result.acceptable == {}


def test_limit_is_the_end_of_the_interval_nearest_to_no_change():
    nearest = decided(SLOWER, BASE).comparison("T1").low - 1
    assert nearest > 0
    assert decided(SLOWER, BASE, accepted("T1", nearest)).verdict is Verdict.ACCEPTED
    assert decided(SLOWER, BASE, accepted("T1", 0.999 * nearest)).verdict is Verdict.REGRESSED


def test_another_metric_is_not_let_through():
    head = noisy_set(1, factors={"T1": 1.5, "T2x": 2.0})
    result = decided(head, BASE, accepted("T1", 0.5))
    assert result.verdict is Verdict.REGRESSED
    assert [result.comparison(name).verdict for name in ("T1", "T2x")] == [Verdict.ACCEPTED, Verdict.REGRESSED]
    assert result.acceptable.keys() == {"T2x"}
    assert decided(SLOWER, BASE, accepted("T2x", 9.0)).verdict is Verdict.REGRESSED


def test_change_in_the_other_direction_is_not_accepted():
    assert decided(SLOWER, BASE, accepted("T1", -0.5)).verdict is Verdict.REGRESSED


@pytest.mark.parametrize(("size", "verdict"), [(-0.4, Verdict.ACCEPTED), (-0.01, Verdict.REGRESSED)])
def test_metric_that_became_too_small(size, verdict):
    """Higher is better."""
    head, base = with_own(noisy_set(1), 0.6), with_own(noisy_set(2))
    assert decided(head, base, accepted("grip_rate", size)).comparison("grip_rate").verdict is verdict


def test_spread_is_never_accepted():
    head, base = versions(noise(1, 30, 0.32) + 1.0, noise(2, 30))
    before = decided(head, base)
    assert before.comparison("T1").location is Verdict.REGRESSED
    assert before.acceptable == {}, "an accepted location would leave the spread"
    result = decided(head, base, accepted("T1", 9.0))
    assert (result.comparison("T1").location, result.verdict) == (Verdict.REGRESSED, Verdict.REGRESSED)


def test_doubt_about_another_metric_is_more_severe():
    head, base = (
        noisy_set(seed, factors={"T1": factor}, cv={"T4": 0.05, "T1": 0.05}) for seed, factor in ((1, 1.5), (2, 1.0))
    )
    head = with_metric(head, "T4", typical=1970.0, cv=0.5, seed=1)
    base = with_metric(base, "T4", typical=1970.0, cv=0.5, seed=2)
    policy = Policy(accepted={"T1": accepted("T1", 0.5)}, required=("T4",))
    result = decide(head, base, policy)
    assert result.comparison("T1").verdict is Verdict.ACCEPTED
    assert result.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("share", "verdict"), [(0.5, Verdict.ACCEPTED), (0.05, Verdict.REGRESSED)])
def test_failures_up_to_the_accepted_share(share, verdict):
    """Failed trials are the slowest: T1 is red by itself if more than half of them fail."""
    head, base = noisy_set(1, n=30, failures=12), noisy_set(2, n=30)
    assert decided(head, base).acceptable[SUCCESS_RATE] == pytest.approx(0.4)
    result = decided(head, base, accepted(SUCCESS_RATE, share), *(accepted(name, 9.0) for name in ("T1", "T4")))
    rises = [each for each in result.reasons if isinstance(getattr(each, "change", each), why.FailuresRose)]
    assert [why.VERDICT_OF[type(each)] for each in rises] == [verdict]


@pytest.mark.parametrize("size", [-1.0, 0.0, 1.5])
def test_size_that_is_no_share_accepts_no_failures(size):
    head, base = noisy_set(1, n=30, failures=12), noisy_set(2, n=30)
    result = decided(head, base, accepted(SUCCESS_RATE, size))
    assert any(isinstance(each, why.FailuresRose) for each in result.reasons)


def test_name_of_the_success_rate_is_that_of_no_metric():
    with pytest.raises(ConfigurationError, match="cannot name a metric"):
        replace(GRIP_RATE, name=SUCCESS_RATE)


def test_metric_without_a_finite_size_is_not_accepted():
    """Most trials of head failed, and count as infinitely slow."""
    head, base = noisy_set(1, n=30, failures=20), noisy_set(2, n=30)
    result = decided(head, base, accepted("T1", 1e308), accepted(SUCCESS_RATE, 1.0))
    assert result.comparison("T1").ratio == math.inf
    assert (result.comparison("T1").verdict, result.verdict) == (Verdict.REGRESSED, Verdict.REGRESSED)
    assert "T1" not in result.acceptable


def test_accepted_failures_leave_a_missed_expectation_red():
    head = noisy_set(1, n=30, failures=12)
    missed = [each for each in decided(head, noisy_set(2, n=30)).reasons if isinstance(each, why.MissedSuccessRate)]
    result = decided(head, noisy_set(2, n=30), accepted(SUCCESS_RATE, 0.9))
    assert missed
    assert result.verdict is Verdict.REGRESSED


def test_accepted_change_does_not_confirm_another_suspicion():
    """T2x looked worse than the stored baseline, and cannot be judged interleaved; T1 is accepted."""
    stored = [noisy_set(seed, factors={"T1": factor, "T2x": factor}) for seed, factor in ((1, 1.5), (2, 1.0))]
    head, base = (
        noisy_set(seed, factors={"T1": factor}, cv={"T2x": 3.0}, session="one") for seed, factor in ((3, 1.5), (4, 1.0))
    )
    screen = Screen(head=stored[0], base=stored[1], suspicious=("T1", "T2x"))
    policy = Policy(accepted={"T1": accepted("T1", 0.6)})
    result = judge(head, Grounds(policy=policy, base=Found(base, Path("base.json")), screen=screen)).result
    assert result.comparison("T1").verdict is Verdict.ACCEPTED
    assert result.verdict is Verdict.INCONCLUSIVE
    assert why.NotConfirmed(("T2x",)) in result.reasons


def test_unreadable_file_is_named_where_something_is_red():
    policy = Policy(accepted_unreadable="it is damaged")
    assert why.AcceptedUnreadable("it is damaged") in decide(SLOWER, BASE, policy).reasons
    assert decide(noisy_set(1), BASE, policy).reasons == decide(noisy_set(1), BASE, Policy()).reasons


def test_change_of_the_accepted_size_is_rarely_red():
    """The promised probability of error is that of an unchanged version."""
    pairs = ((noisy_set(2 * seed, factors={"T1": 1.5}), noisy_set(2 * seed + 1)) for seed in range(40))
    found = [decided(*pair, accepted("T1", 0.5)).comparison("T1").verdict for pair in pairs]
    assert found.count(Verdict.ACCEPTED) >= 39
