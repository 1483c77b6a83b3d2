"""What is told of versions that were measured at different times."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_ldos.judge.baseline.calibration_store import Calibrated, Uncalibrated
from pytest_ldos.show.report.apart import describe_apart
from tests.builders.calibrations import calibration_of
from tests.builders.reports import section_of
from tests.builders.trials import in_starts, noisy_set


def calibrated(runs):
    return Calibrated(dataclasses.replace(calibration_of({}), runs=runs), Path("x"))


def told(lookup, *, per_start=10, session=""):
    head, base = (in_starts(noisy_set(seed, session=session), per_start) for seed in (1, 2))
    return describe_apart(head, base, lookup)


@pytest.mark.parametrize(
    ("lookup", "per_start", "words"),
    [
        (Uncalibrated(), 10, "in 1 start and the baseline in 1: how much equal versions then differ is not known here "
         "(no calibration) and assumed; "),
        (Uncalibrated(), 2, "in 5 starts and the baseline in 5: how much equal versions then differ is not known here "
         "(no calibration) and assumed; "),
        (calibrated(1), 10, "(1 run of calibration, 5 at different times would tell) and assumed; "),
    ],
)  # fmt: skip
def test_what_is_not_known_is_told(lookup, per_start, words):
    assert words in told(lookup, per_start=per_start)


def test_nothing_is_told_where_it_is_known_or_need_not_be():
    assert told(calibrated(5)) == ""
    assert told(Uncalibrated(), session="one") == ""


def test_it_stands_beside_the_verdict():
    head, base = noisy_set(1), noisy_set(2)
    section = section_of(head, base, calibration=Uncalibrated())
    assert any("measured at different times" in note for note in section.notes)
