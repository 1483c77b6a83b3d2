"""Instruments in tests: their marks, their fixture, their verdicts."""

from __future__ import annotations

import pytest

INSTRUMENT = """
import dataclasses
import os
from pytest_ldos.host.availability import Availability
from pytest_ldos.errors import Unavailable
from pytest_ldos.middleware.instrument import Instrument
from tests.builders.studies import HALF_TRIP, RATE, study

@dataclasses.dataclass(frozen=True, kw_only=True)
class Spec:
    median: float = 10.0
    absent: bool = False

def available(spec):
    return Availability(not spec.absent, "it is not installed", "install it")

def measure(spec, progress):
    progress.doing("round 1")
    return study([spec.median * (1 + 0.01 * (place % 7)) for place in range(20)])

INSTRUMENT = Instrument(name="steady", spec=Spec, quantities=(HALF_TRIP, RATE), available=available, measure=measure)
"""

CONFTEST = """
from pytest_ldos.campaign import instruments
instruments.MODULES["steady"] = "steady_instrument"
"""


@pytest.fixture
def project(pytester):
    pytester.syspathinsert()
    pytester.makepyfile(steady_instrument=INSTRUMENT)
    pytester.makeconftest(CONFTEST)
    return pytester


def run(project, settings: str, *arguments: str):
    project.makepyfile(
        f"import pytest\n@pytest.mark.ldos_steady({settings})\ndef test_it(ldos_study):\n    ldos_study.check()\n"
    )
    return project.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


def test_the_first_run_is_the_baseline_and_a_slower_one_regresses(project):
    first = run(project, "")
    first.assert_outcomes(passed=1)
    first.stdout.fnmatch_lines(["*recorded as the first baseline*"])
    run(project, "").assert_outcomes(passed=1)
    slower = run(project, "median=14")
    slower.assert_outcomes(failed=1)
    slower.stdout.fnmatch_lines(["*half_p50*"])
    assert slower.ret == 10


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("medain=3", "*medain*"),
        ("median='x'", "*median is 'x'*"),
        ("3", "*takes settings by name*"),
    ],
)
def test_settings_that_make_no_sense_are_said(project, settings, said):
    result = run(project, settings)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_what_cannot_run_here_says_why(project):
    result = run(project, "absent=True")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*it is not installed*"])


def test_a_test_without_a_mark_is_told_which_there_are(project):
    project.makepyfile("def test_it(ldos_study): ldos_study.check()")
    result = project.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*mark it with one of: *ldos_steady*"])


def test_marks_are_known(project):
    project.runpytest_inprocess("--markers").stdout.fnmatch_lines(["*ldos_steady(**settings)*ldos steady*"])
