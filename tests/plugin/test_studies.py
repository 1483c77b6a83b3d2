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


MARKED = """
import pytest

@pytest.mark.ldos_steady({settings})
def test_it(ldos_study):
    ldos_study.check()
"""


@pytest.fixture
def run(project, forked):
    """Runs one test of a made-up instrument, with these settings of its mark; or another test."""
    project.makepyfile(steady_instrument=INSTRUMENT)
    project.makeconftest(CONFTEST)

    def runner(settings: str = "", *arguments: str, test: str = MARKED):
        project.makepyfile(test_it=test.replace("{settings}", settings))
        return forked.run(project.path, "test_it.py", *arguments)

    return runner


def test_the_first_run_is_the_baseline_and_a_slower_one_regresses(run):
    first = run("")
    first.assert_outcomes(passed=1)
    first.stdout.fnmatch_lines(["*recorded as the first baseline*"])
    run("").assert_outcomes(passed=1)
    slower = run("median=14")
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
def test_settings_that_make_no_sense_are_said(run, settings, said):
    result = run(settings)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_what_cannot_run_here_says_why(run):
    result = run("absent=True")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*it is not installed*"])


def test_a_test_without_a_mark_is_told_which_there_are(run):
    result = run(test="def test_it(ldos_study): ldos_study.check()")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*mark it with one of: *ldos_steady*"])


def test_marks_are_known_with_the_commands_that_measure_alike(run):
    listed = run("", "--markers").stdout
    listed.fnmatch_lines(["*ldos_steady(**settings)*'ldos steady'*"])
    listed.fnmatch_lines(["*ldos_cpu_cost(**settings)*'ldos cpu-cost'*"])
