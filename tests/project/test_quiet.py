"""The condition of tests that measure time: CPU time of other programs, and failures under it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests import quiet
from tests.quiet import MOST_OF_OTHERS, OthersWatch

INNER = """
import pytest

@pytest.fixture(scope="module")
def measured():
    return 7

@pytest.fixture
def left():
    yield
    assert False, "something is left"

@pytest.mark.measures_time
def test_it_measures(measured):
    assert measured < 5, "too slow"

@pytest.mark.measures_time
def test_it_measures_and_leaves_something(measured, left):
    assert measured < 5, "too slow"

@pytest.mark.measures_time
def test_it_leaves_something(left): ...

def test_it_measures_nothing():
    assert False

@pytest.mark.measures_time
def test_it_holds(measured):
    assert measured > 5
"""
BURN = "import time\nwhile time.process_time() < 0.3: pass"


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs the tests where others use a share of the CPUs."""

    def runner(share: float) -> pytest.RunResult:
        monkeypatch.setattr(OthersWatch, "share", lambda watch: share)
        pytester.makeini("[pytest]\nmarkers = measures_time: as here")
        pytester.makepyfile(INNER)
        return pytester.runpytest_inprocess("-p", "tests.quiet", "-p", "no:cacheprovider", "-rs")

    return runner


def test_failure_on_a_busy_machine_is_a_skip_with_the_share(run):
    result = run(0.63)
    result.assert_outcomes(passed=2, skipped=3, failed=1, errors=1)
    result.stdout.fnmatch_lines(["SKIPPED*measures time*used 63 % of the CPUs (20 % at most)*too slow*"])
    result.stdout.fnmatch_lines(["*1 failed*"])


def test_failure_on_a_quiet_machine_is_a_failure(run):
    run(MOST_OF_OTHERS).assert_outcomes(passed=2, failed=3, errors=2)


SHARED = """
import pytest

@pytest.fixture(scope="session")
def measured():
    return 7
"""
LATER = """
import pytest
pytestmark = pytest.mark.measures_time

def test_with_it(measured):
    assert measured < 5

def test_without_it():
    assert False
"""


def test_disturbed_fixture_counts_for_all_its_tests(pytester, monkeypatch):
    """Its tests are in two files; others used the CPUs while it was made, and no more."""
    shares = iter([0.0, 0.63, 0.0, 0.0, 0.0])
    monkeypatch.setattr(OthersWatch, "__init__", lambda watch: setattr(watch, "found", next(shares)))
    monkeypatch.setattr(OthersWatch, "share", lambda watch: watch.found)
    pytester.makeini("[pytest]\nmarkers = measures_time: as here")
    pytester.makeconftest(SHARED)
    first = "import pytest\n@pytest.mark.measures_time\ndef test_it(measured): ...\n"
    pytester.makepyfile(test_first=first, test_later=LATER)
    result = pytester.runpytest_inprocess("-p", "tests.quiet", "-p", "no:cacheprovider", "-rs")
    result.assert_outcomes(passed=1, skipped=1, failed=1)
    result.stdout.fnmatch_lines(["SKIPPED*test_later.py:*used 63 % of the CPUs*"])


def test_own_and_childrens_cpu_time_is_not_foreign(monkeypatch):
    """The machine was idle for 4 of 10 s; of the rest, some is known to be ours."""
    times = iter([(0.0, 0.0), (4.0, 10.0)])
    monkeypatch.setattr(quiet, "_machine_s", lambda: next(times))
    watch = OthersWatch()
    subprocess.run([sys.executable, "-c", BURN], check=True)
    running = subprocess.Popen([sys.executable, "-c", BURN + "\nprint(1, flush=True)\ntime.sleep(60)"], stdout=-1)
    try:
        assert running.stdout is not None
        running.stdout.readline()
        end_s = time.process_time() + 0.3
        while time.process_time() < end_s:
            pass
        assert 0 <= watch.share() <= 0.53, "0.9 s were ours"
    finally:
        running.kill()
        running.communicate()


def test_other_processes_cpu_time_is_foreign():
    """One that is no child of ours burns CPU time; others may do so as well."""
    watch, began_s = OthersWatch(), time.monotonic()
    reading, writing = os.pipe()
    burner = f"import os, subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {BURN!r}], pass_fds=[{writing}])"
    subprocess.run([sys.executable, "-c", burner], pass_fds=[writing], check=True)
    os.close(writing)
    assert os.read(reading, 1) == b"", "it has ended"
    os.close(reading)
    all_s = (time.monotonic() - began_s) * (os.cpu_count() or 1)
    assert watch.share() > 0.15 / all_s


def test_short_span_gives_no_foreign_share(monkeypatch):
    """The kernel counts in hundredths of a second: in a setup of a few milliseconds all CPUs seem to be taken."""
    times = iter([(0.0, 0.0), (0.0, 0.02)])
    monkeypatch.setattr(quiet, "_machine_s", lambda: next(times))
    assert OthersWatch().share() == 0
