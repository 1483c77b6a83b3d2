"""A comparison is worth no more than the base's measurement."""

from __future__ import annotations

from pytest_ldos.campaign.decision import decide_interleaved
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.verdict import Verdict
from tests.builders.sentences import sentences
from tests.builders.trials import noisy_set

HEAD, BASE = noisy_set(1), noisy_set(2)
REACHED, MISSED = {"summary": "load", "shortfall": ""}, {"summary": "load", "shortfall": "it reached 3 of 4"}


def test_equal_versions_pass():
    assert decide_interleaved(HEAD, BASE, Policy()).verdict is Verdict.PASSED


def test_a_load_that_the_base_did_not_get_makes_it_invalid():
    result = decide_interleaved(noisy_set(1, loads=(REACHED,)), noisy_set(2, loads=(MISSED,)), Policy())
    assert result.verdict is Verdict.INVALID
    assert sentences(result)[0] == "base: the load was not what was asked for: it reached 3 of 4"
    assert result.more_trials_because == ()


def test_a_base_that_was_not_finished_makes_it_invalid():
    result = decide_interleaved(HEAD, noisy_set(2, incomplete="simulator was killed by SIGKILL"), Policy())
    assert result.verdict is Verdict.INVALID
    assert "base: the trials could not be finished: simulator was killed" in sentences(result)[0]


def test_a_head_that_dies_is_a_regression_whatever_became_of_the_base():
    """The session ended with it, so the base has fewer trials, too."""
    died = "head: simulator was killed by SIGKILL"
    result = decide_interleaved(noisy_set(1, failures=1, incomplete=died), noisy_set(2, incomplete=died), Policy())
    assert result.verdict is Verdict.REGRESSED
    assert f"base: the trials could not be finished: {died}" in sentences(result)


def test_a_base_that_fails_trials_is_no_fault_of_the_measurement():
    result = decide_interleaved(HEAD, noisy_set(2, failures=3), Policy())
    assert result.verdict is not Verdict.INVALID


def test_what_is_wrong_with_head_is_told_first():
    result = decide_interleaved(noisy_set(1, loads=(MISSED,)), noisy_set(2, loads=(MISSED,)), Policy())
    assert result.verdict is Verdict.INVALID
    assert not sentences(result)[0].startswith("base")
