"""Notes on versions that were measured at different times."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_ldos.base.stats.starts import Variance
from pytest_ldos.judge.baseline.store import Calibrated, Found, Uncalibrated
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.judging import Grounds, judge
from pytest_ldos.judge.unchanged import Between, KnownRuns
from pytest_ldos.show.report.compose import compose_section
from pytest_ldos.show.report.sentences import describe_run_variation
from tests.builders.calibrations import calibration_of
from tests.builders.trials import noisy_set


def calibrated(runs):
    return Calibrated(dataclasses.replace(calibration_of({}), runs=runs), Path("x"))


def known(*, runs, days=1, **deviations):
    between = {name: Between(runs=Variance(value**2, runs - 1)) for name, value in deviations.items()}
    return KnownRuns(of_baseline=runs, observed=runs, days=days, between=between)


def judged(lookup, *, session="", known=None):
    head, base = (noisy_set(seed, session=session) for seed in (1, 2))
    return judge(head, Grounds(policy=Policy(known=known), base=Found(base, Path("b")), calibration=lookup))


def test_unknown_run_variation_is_reported():
    reported = describe_run_variation(judged(Uncalibrated()))
    assert reported.startswith("the variation between runs is not known here yet, and taken from other machines: ")
    assert describe_run_variation(judged(calibrated(1))) == reported


@pytest.mark.parametrize(
    ("runs", "reported"),
    [
        (known(runs=6, days=4, T1=0.1, T1mean=0.0132), "run to run, T1mean varies by 1.3 % here: 6 runs in 4 days"),
        (known(runs=2, T4=0.0004), "run to run, T4 varies by 0.04 % here: 2 runs in 1 day; each run of an unchanged stack improves this estimate"),
    ],
)  # fmt: skip
def test_known_run_variation_is_one_line(runs, reported):
    assert describe_run_variation(judged(Uncalibrated(), known=runs)) == reported


def test_run_variation_is_not_reported_if_calibrated_or_interleaved():
    assert describe_run_variation(judged(calibrated(5))) == ""
    assert describe_run_variation(judged(Uncalibrated(), session="one")) == ""


def test_run_variation_is_shown_with_the_verdict():
    assert any(
        "run to run, T4" in note for note in compose_section(judged(Uncalibrated(), known=known(runs=9, T4=0.1))).notes
    )
