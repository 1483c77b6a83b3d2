"""Trials whose times were distorted are never judged, neither as head nor as base."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_ldos.judge.baseline.store import Found
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import decide, judge_alone
from pytest_ldos.judge.gate.reasons import Distorted, OfBase
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Grounds, judge
from pytest_ldos.measure.trial.artifacts import decode_trials, encode_trials
from tests.builders.trials import noisy_set

REASON = "system calls were counted"


def distorted(trials):
    return dataclasses.replace(trials, watched="strace", distortion=REASON)


@pytest.mark.parametrize("sides", ["head", "base", "both"])
def test_distorted_trials_have_no_verdict(sides):
    head, base = noisy_set(1, session="one"), noisy_set(2, session="one")
    head = distorted(head) if sides != "base" else head
    base = distorted(base) if sides != "head" else base
    interleaved = Grounds(policy=Policy(), base=Found(base, Path("base/trials.json")))
    for judged in (decide(head, base, Policy()), judge(head, interleaved).result):
        assert judged.verdict is Verdict.INVALID
        assert {Distorted(REASON), OfBase(Distorted(REASON))} & {*judged.reasons}
        assert not judged.comparisons


def test_distorted_trials_alone_are_invalid():
    assert judge_alone(distorted(noisy_set(1)), Policy()).verdict is Verdict.INVALID
    assert judge_alone(noisy_set(1), Policy()).verdict is Verdict.PASSED


def test_records_keep_the_mark_and_other_records_are_unchanged(tmp_path):
    marked = distorted(noisy_set(1))
    assert decode_trials(encode_trials(marked), tmp_path) == marked
    assert "distortion" not in encode_trials(noisy_set(1))
    assert decode_trials(encode_trials(noisy_set(1)), tmp_path) == noisy_set(1)
