"""`ldos find-breaking` on a stack that needs no time, and which breaks where the test says."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.errors import BringUpFailed, ConfigurationError, Unavailable
from pytest_ldos.cli import search
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.measure.trial import rig
from tests.builders.breaking import MadeUpStack
from tests.builders.command_line import invoke_ldos, lines_of
from tests.builders.repository import Repository
from tests.fakes.rig import noisy, open_fake_rig

ADDRESS = "stack.faults.planning_delay_ms"
RANGE = ("--lo", "1", "--hi", "1000")
QUICK = (*RANGE, "--precision", "100%")


@pytest.fixture
def ldos(monkeypatch, tmp_path):
    """Runs the command in an empty project; faults that `run` would report are raised."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(search, "refuse_unable", lambda spec: None)

    def run(*arguments):
        return invoke_ldos("find-breaking", *arguments)

    return run


@pytest.fixture
def stack(monkeypatch):
    """Makes the command measure a made-up stack; its levels are what was started."""

    def use(**how):
        made = MadeUpStack(**how)
        monkeypatch.setattr(search, "measure_start", lambda spec, site, block: made.measure(spec))
        return made.levels

    return use


def test_a_threshold_of_success(ldos, stack, tmp_path):
    starts = stack(breaks_at=100)
    result = ldos(ADDRESS, *QUICK)
    lines = lines_of(result.stdout)
    assert result.exit_code == 0
    assert lines[0].startswith(f"baseline breaks at {ADDRESS} = ")
    assert any("failed: " in line and "(the controller gave up)" in line for line in lines)
    assert starts[:2] == [1, 1]
    assert f"baseline: breaking point: start 1 at 1; 0 trials, at most {200} more" in result.stderr
    assert "1 holds, 1000 breaks" in result.stderr
    assert not list((tmp_path / ".ldos/breaking").rglob("*.json"))


def test_a_threshold_of_a_metric_as_json(ldos, stack):
    stack(slow_from=13)
    document = json.loads(ldos(ADDRESS, *QUICK, "--until", "T1>2x", "--format", "json").stdout)
    assert document["finding"] == "breaks"
    assert document["holds"] < 13 <= document["breaks"]
    assert document["criterion"] == "the median of T1 is beyond 2 × its calm one"
    assert document["cause"]["failed"] == 0


def test_each_start_has_its_own_stack_and_trace(ldos, monkeypatch, tmp_path):
    """On made-up motions that are planned longer by the level: T1 is 12 ms when calm."""
    opened = []

    def open_rig(spec, folder, **rest):
        opened.append(spec.faults.planning_delay_ms)
        plain = noisy(len(opened))
        slower = lambda index: dataclasses.replace(plain(index), planning_ms=plain(index).planning_ms + opened[-1])  # noqa: E731
        return open_fake_rig(spec, folder, script=slower)

    monkeypatch.setattr(rig, "open_rig", open_rig)
    few = ("--lo", "1", "--hi", "20", "--precision", "1900%", "--confidence", "0.6")
    document = json.loads(ldos(ADDRESS, *few, "--until", "T1>2x", "--format", "json").stdout)
    assert (document["holds"], document["breaks"]) == (1, 20)
    assert {each["stage"] for each in document["cause"]["stages"]} == {"planning", "control loop", "simulation step"}
    assert opened == [1.0] * 3 + [20.0] * (len(opened) - 3)
    assert not list((tmp_path / ".ldos/runs").glob("*/*"))


def test_a_page_in_a_file(ldos, stack, tmp_path):
    stack(breaks_at=100)
    result = ldos(ADDRESS, *QUICK, "--output", "report/breaking.html")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].startswith("baseline breaks at ")
    assert result.stdout.splitlines()[-1] == "report: report/breaking.html"
    assert "</svg>" in (tmp_path / "report/breaking.html").read_text()


def test_unbroken_range_is_an_answer(ldos, stack):
    stack()
    result = ldos(ADDRESS, *QUICK)
    assert result.exit_code == 0
    assert f"does not break up to {ADDRESS} = 1000 ms" in " ".join(result.stdout.split())


def test_interrupted_run_is_saved_and_resumed(ldos, stack):
    starts = stack(breaks_at=100, ends={4: KeyboardInterrupt()})
    result = ldos(ADDRESS, *QUICK)
    assert result.exit_code == 130
    assert "interrupted; complete starts are saved: the same command resumes" in result.stderr
    assert len(starts) == 4
    starts = stack(breaks_at=100)
    result = ldos(ADDRESS, *QUICK)
    assert result.exit_code == 0
    assert "continues what was interrupted; starts that are there: 3" in result.stderr
    assert "start 4 at " in result.stderr
    assert "start 3 at " not in result.stderr


def test_starts_before_an_edit_are_left_out(ldos, stack, tmp_path):
    repository = Repository.create(tmp_path)
    repository.commit(code_py="one")
    for text in ("two", "three"):
        (tmp_path / "code.py").write_text(text)
        stack(breaks_at=100, ends={3: KeyboardInterrupt()})
        result = ldos(ADDRESS, *QUICK)
    assert "starts of another version or setting, left out: 2" in result.stderr
    assert "continues" not in result.stderr


def test_search_resumes_after_the_time_limit(ldos, stack):
    stack(breaks_at=100)
    first = ldos(ADDRESS, *QUICK, "--time-limit", "0.001s")
    assert first.exit_code == exit_codes.INVALID
    assert "the time limit ended it: the same command goes on from here" in first.stdout
    second = ldos(ADDRESS, *QUICK)
    assert second.exit_code == 0
    assert "starts that are there: 1" in second.stderr


def test_calm_end_that_does_not_start_is_unmeasurable(ldos, stack):
    failure = BringUpFailed("the planner was not ready", remedy="look at the logs")
    stack(ends={1: failure, 2: failure})
    result = ldos(ADDRESS, *QUICK)
    assert result.exit_code == exit_codes.INVALID
    assert "the planner was not ready" in result.stdout


def test_a_busy_machine_is_named(ldos, stack):
    stack()
    with measuring_lock():
        result = ldos(ADDRESS, *QUICK)
    assert result.exit_code == exit_codes.INVALID
    assert "another measuring session holds this machine" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("dds_flod.rate", *RANGE), "did you mean 'dds_flood.rate'"),
        (("dds_flood.reliability", *RANGE), "is no number(.|\n)*ldos sweep --over dds_flood.reliability"),
        (("dds_flood.readers", *RANGE), "is no number"),
        (("trials", *RANGE), "how much is measured(.|\n)*such as dds_flood.rate"),
        (("dds_flood.rate", "--lo", "100", "--hi", "2e7"), "dds_flood.rate_hz=20000000.0: a flood at"),
        (("dds_flood.rate", "--lo", "0", "--hi", "1000"), "0 Hz a publisher"),
        (("dds_flood.rate", "--lo", "200", "--hi", "100"), "--lo must be less than --hi"),
        (("dds_flood.rate", "--lo", "200", "--hi", "200"), "--lo must be less than --hi"),
        (("cpu_load.workers", "--lo", "1.5", "--hi", "4"), "only whole numbers"),
        (("cpu_load.percent", "--lo", "10", "--hi", "200"), "between 1 and 100"),
        ((ADDRESS, *RANGE, "--until", "T9>3x"), "unknown metric"),
        ((ADDRESS, *RANGE, "--until", "T3p98>3x"), "did you mean 'T3p99'"),
        ((ADDRESS, *RANGE, "--until", "slow"), "says no criterion"),
        ((ADDRESS, *RANGE, "--confidence", "0.5"), "between 0.5 and 1"),
        ((ADDRESS, *RANGE, "--confidence", "100%"), "between 0.5 and 1"),
        ((ADDRESS, *RANGE, "--confidence", "sure"), "--confidence is 'sure'"),
        ((ADDRESS, *RANGE, "--precision", "0"), "--precision is '0'"),
        ((ADDRESS, *RANGE, "--max-trials", "20"), "cannot decide even two levels"),
        ((ADDRESS, *RANGE, "--time-limit", "soon"), "--time-limit is 'soon'"),
        ((ADDRESS, *RANGE, "--scenario", "baselin"), "did you mean 'baseline'"),
        ((ADDRESS, *RANGE, "--output", "breaking.txt"), "has no format of a report"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(ldos, stack, arguments, printed):
    starts = stack()
    with pytest.raises(ConfigurationError) as refused:
        ldos(*arguments)
    assert refused.match(printed)
    assert starts == []


def test_text_in_place_of_a_number_is_a_usage_error(ldos):
    assert ldos("dds_flood.rate", "--lo", "few", "--hi", "1000").exit_code == exit_codes.USAGE
    assert ldos("dds_flood.rate", "--lo", "1").exit_code == exit_codes.USAGE


def test_unavailable_load_is_reported_before_starting(ldos, stack, monkeypatch):
    starts = stack()

    def refuse(spec):
        raise Unavailable("cannot measure: stress-ng not found", remedy="sudo apt-get install stress-ng")

    monkeypatch.setattr(search, "refuse_unable", refuse)
    result = ldos("cpu_load.workers", "--lo", "1", "--hi", "4")
    assert result.exit_code == exit_codes.INVALID
    assert "stress-ng not found" in result.stderr
    assert starts == []


KILLED = """
    import os, signal
    from pytest_ldos.cli import search
    from pytest_ldos.cli.main import run
    from tests.builders.breaking import MadeUpStack

    made = MadeUpStack(breaks_at=100)

    def measured(spec, site, block):
        if len(made.levels) == {kill_after}:
            os.kill(os.getpid(), signal.SIGKILL)
        return made.measure(spec)

    search.measure_start = measured
    search.refuse_unable = lambda spec: None
    run()
"""


@pytest.mark.acceptance
def test_killed_search_resumes(tmp_path):
    def ldos(kill_after):
        command = [
            sys.executable,
            "-c",
            textwrap.dedent(KILLED).format(kill_after=kill_after),
            "find-breaking",
            ADDRESS,
            *QUICK,
        ]
        root = str(Path(__file__).parents[3])
        environment = {**os.environ, "PYTHONPATH": root}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert ldos(2).returncode == -signal.SIGKILL
    done = ldos(-1)
    assert done.returncode == 0, done.stderr
    assert "continues what was interrupted; starts that are there: 2" in done.stderr
