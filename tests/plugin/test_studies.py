"""Instruments in tests: their marks, their fixture, their verdicts."""

from __future__ import annotations

import pytest

INSTRUMENT = """
import dataclasses
import os
from pytest_ldos.host.availability import Availability
from pytest_ldos.base.errors import Unavailable
from pytest_ldos.instruments.study import Instrument
from tests.builders.studies import HALF_TRIP, RATE, study

@dataclasses.dataclass(frozen=True, kw_only=True)
class Spec:
    median: float = 10.0
    rounds: int = 20
    absent: bool = False

def available(spec):
    return Availability(not spec.absent, "it is not installed", "install it")

def measure(spec, progress):
    progress.doing("round 1")
    return study([spec.median * (1 + 0.01 * (place % 7)) for place in range(spec.rounds)])

INSTRUMENT = Instrument(name="steady", spec=Spec, quantities=(HALF_TRIP, RATE), available=available, measure=measure)
"""

CONFTEST = """
from pytest_ldos import instruments
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
    ("settings", "printed"),
    [
        ("medain=3", "*medain*"),
        ("median='x'", "*median is 'x'*"),
        ("3", "*takes settings by name*"),
    ],
)
def test_invalid_settings_are_reported(run, settings, printed):
    result = run(settings)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([printed])
    result.stdout.no_fnmatch_line("*Traceback*")


TWO = """
import pytest

@pytest.mark.ldos_steady(median=10)
def test_one(ldos_study):
    ldos_study.check()

@pytest.mark.ldos_steady(median=20{settings})
def test_other(ldos_study):
    ldos_study.check()
"""

EACH = """
import pytest

@pytest.mark.parametrize("place", ["left", pytest.param("right", marks=pytest.mark.ldos_steady(name="right"))])
@pytest.mark.ldos_steady(median=20, rounds=8)
def test_{settings}(ldos_study, place):
    assert len(ldos_study.trials.trials) == 8
    ldos_study.check()
"""


def names(project):
    return {file.stem for file in project.path.glob(".ldos/baselines/**/*.json")}


def test_two_tests_of_an_instrument_are_refused_unless_one_has_a_name(run, project):
    refused = run(test=TWO)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(
        ["*test_it.py::test_one and test_it.py::test_other would share the baseline 'steady'*", "*name=*"]
    )
    assert names(project) == set()
    run(", name='other'", test=TWO).assert_outcomes(passed=2)
    assert names(project) == {"steady", "other"}
    again = run(", name='other'", test=TWO)
    again.assert_outcomes(passed=2)
    assert "inconclusive" not in again.stdout.str()


def test_a_renamed_test_keeps_its_baseline_and_a_set_of_parameters_has_a_name(run, project):
    run("it", test=EACH).assert_outcomes(passed=2)
    assert names(project) == {"steady", "right"}
    renamed = run("that", test=EACH)
    renamed.assert_outcomes(passed=2)
    renamed.stdout.no_fnmatch_line("*recorded as the first baseline*")


def test_a_mark_may_name_its_baseline(run, project):
    run("name='cell: steady'").assert_outcomes(passed=1)
    assert names(project) == {"cell_steady"}


def test_a_test_with_marks_of_two_instruments_is_refused(run):
    both = MARKED.replace("@pytest", "@pytest.mark.ldos_latency(rounds=4)\n@pytest", 1)
    result = run(test=both)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*is marked with ldos_latency and ldos_steady*"])


def test_misspelled_mark_is_reported_with_the_nearest_one(run):
    lax = ("-o", "addopts=-p no:cacheprovider")  # with --strict-markers pytest itself refuses it
    result = run("", *lax, test=MARKED.replace("ldos_steady", "ldos_stedy"))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*did you mean 'ldos_steady'*"])


def test_too_few_rounds_are_not_judged(run):
    result = run("rounds=3")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*3 rounds of * cannot be judged; have 4 or more*"])


def test_unavailable_instrument_is_reported(run):
    result = run("absent=True")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*it is not installed*"])


def test_test_without_a_mark_is_reported_with_known_marks(run):
    result = run(test="def test_it(ldos_study): ldos_study.check()")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*has no mark of an instrument*", "*known are: *ldos_steady*"])


def test_marks_are_known_with_the_commands_that_measure_alike(run):
    listed = run("", "--markers").stdout
    listed.fnmatch_lines(["*ldos_steady(**settings)*'ldos steady'*"])
    listed.fnmatch_lines(["*ldos_cpu_cost(**settings)*'ldos cpu-cost'*"])


def test_local_programs_are_not_measured_as_a_revisions(run, project):
    result = run("", "--ldos-head=HEAD~1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*--ldos-head HEAD~1: only a stack is measured of a revision, and an instrument *"])
    assert not list(project.path.glob(".ldos/runs"))


def test_unjudged_study_ends_a_strict_run_with_12(run):
    unjudged = MARKED.replace("ldos_study.check()", "assert ldos_study.trials.trials")
    result = run("", "--ldos-strict", test=unjudged)
    result.assert_outcomes(passed=1)
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*test_it.py::test_it: trials were made but never judged*"])


def test_rerun_test_measures_its_instrument_once(run, project):
    """In its fixture, so that the second start is refused while the test is set up."""
    pytest.importorskip("pytest_rerunfailures")
    run("")
    slower = run("median=14", "--reruns=2")
    assert slower.ret == 10
    slower.stdout.fnmatch_lines(["*half_p50*", "(not measured again*"])
    assert len(list(project.path.glob(".ldos/runs/*/*/trials.json"))) == 2
