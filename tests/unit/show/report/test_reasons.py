"""Sentences for reasons: each kind has one."""

from __future__ import annotations

import math
from typing import get_args

import pytest

from pytest_ldos.judge.baseline.key import OtherHostClasses, OtherScenario
from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.judge.gate.verdict import MayBeWorse, MayFailMore, MayHaveChanged, MoreTrials, VariesTooMuch
from pytest_ldos.show.report.reasons import describe_more_trials, describe_other_calibration, describe_reason
from tests.builders.reasons import FILE, HERE, REASONS, SPREAD, THERE

USES = [
    (MayFailMore(), "failures may have become more frequent"),
    (MayBeWorse("T1", 0.123), "T1 may have become worse by 12 %"),
    (MayBeWorse("T1", math.inf), "T1 may have become worse by any amount"),
    (VariesTooMuch("T1"), "T1 varies too much to show a relevant change"),
    (
        MayHaveChanged("T1", SPREAD),
        "T1 may have become worse: spread × 2.1 (on average 13 % from the median, 6.4 % in the base)",
    ),
]


@pytest.mark.parametrize(("reason", "sentence"), REASONS)
def test_a_reason_has_its_sentence(reason, sentence):
    assert describe_reason(reason) == sentence


@pytest.mark.parametrize(("use", "sentence"), USES)
def test_a_use_of_more_trials_has_its_sentence(use, sentence):
    assert describe_more_trials(use) == sentence


def test_every_kind_has_a_sentence():
    assert {type(reason) for reason, _ in REASONS} == {*get_args(why.Reason)}
    assert {type(use) for use, _ in USES} == {*get_args(MoreTrials)}


def test_unused_calibration_is_reported():
    end = "which is not used for scenario 'cpu_load' of the ros2 stack on host class mine (ldos calibrate --scenario cpu_load)"
    assert (
        describe_other_calibration(OtherHostClasses(HERE, ("a", "b")))
        == f"not calibrated: there is a calibration of host class a, b, {end}"
    )
    found = describe_other_calibration(OtherScenario(FILE, HERE, THERE))
    assert (
        found
        == f"not calibrated: there is a calibration of scenario 'baseline' of the embedded stack on host class theirs (baseline.json), {end}"
    )
