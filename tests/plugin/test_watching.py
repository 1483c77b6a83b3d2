"""``--ldos-profile`` and ``--ldos-syscalls`` as a user meets them: with a made-up stack whose process is a real one."""

from __future__ import annotations

import json
import re

import pytest

from tests.builders.watchers import needs_watchers
from tests.plugin.test_studies import CONFTEST as INSTRUMENT_CONFTEST
from tests.plugin.test_studies import INSTRUMENT

pytestmark = needs_watchers

CONFTEST = """
import atexit
from tests.builders.busy import busy_process, run_for
from tests.fakes import rig

busy = busy_process(gently=True)
process = busy.__enter__()
atexit.register(busy.__exit__, None, None, None)
rig.PID = process.pid
made_up = rig.FakeStack.move

def move(self, goal, *, plan_only=False, **arguments):
    if not plan_only:
        run_for(process, 0.03)
    return made_up(self, goal, plan_only=plan_only, **arguments)

rig.FakeStack.move = move
rig.install(rig.noisy(1))
"""
FAST = ("--ldos-trials=8", "--ldos-warmup=0")


@pytest.fixture
def watch(project):
    project.makeconftest(CONFTEST)
    return lambda *arguments: project.runpytest_subprocess(*FAST, *arguments, timeout=300)


def folder_of(project):
    (folder,) = project.path.glob(".ldos/runs/*/baseline/profile")
    return folder


@pytest.mark.acceptance
def test_profile_is_in_the_runs_folder_and_named_in_the_report(project, watch):
    result = watch("--ldos-profile", "--ldos-profile-rate=499", "--ldos-profiler=perf", "--ldos-report=report.html")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*profile of * samples (perf at 499 Hz): */baseline/profile*",
            "*voluntary*involuntary context switches*(/proc)*",
            "*not recorded as a baseline: it was watched by perf at 499 Hz*",
        ]
    )
    shown = result.stdout.str()
    again = sum(int(each) for each in re.findall(r"(\d+) trials? (?:was|were) made again", shown))
    assert f"a trial ({8 + again})" in shown
    folder = folder_of(project)
    assert {each.name for each in folder.iterdir()} == {
        "start-1.folded",
        "start-2.folded",
        "flame.svg",
        "profile.speedscope.json",
    }
    assert json.loads((folder / "profile.speedscope.json").read_text())["profiles"][0]["endValue"] > 0
    assert "profile of" in (project.path / "report.html").read_text()
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))


@pytest.mark.acceptance
def test_trials_under_strace_are_invalid_and_not_a_baseline(project, watch):
    result = watch("--ldos-syscalls")
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*system calls were counted with strace*", "*system calls: *syscalls.txt*"])
    assert "clock_nanosleep" in (folder_of(project) / "syscalls.txt").read_text()
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))


def test_invalid_settings_are_usage_errors(run):
    result = run("--ldos-profile-rate=0")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*at least 1*"])


@pytest.mark.acceptance
def test_instrument_is_watched_with_its_processes(project):
    project.makeconftest(INSTRUMENT_CONFTEST)
    busy = INSTRUMENT.replace(
        '    progress.doing("round 1")\n',
        "    import subprocess, sys\n"
        '    code = "import time\\nfor _ in range(100): time.sleep(0.001)\\nsum(range(10**7))"\n'
        '    subprocess.run([sys.executable, "-c", code], check=True)\n',
    )
    assert busy != INSTRUMENT
    project.makepyfile(steady_instrument=busy)
    project.makepyfile(
        test_scenario="import pytest\n@pytest.mark.ldos_steady\ndef test_it(ldos_study):\n"
        "    table = {each.name: each for each in ldos_study.study.tables}['system_calls']\n"
        "    assert 'clock_nanosleep' in {row[0] for row in table.rows}\n"
        "    ldos_study.check()\n"
    )
    result = project.runpytest_subprocess("--ldos-profile", "--ldos-profile-rate=499", "--ldos-syscalls", timeout=300)
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*system calls were counted with strace*"])
    (folder,) = project.path.glob(".ldos/runs/*/steady-profile")
    assert {"flame.svg", "profile.speedscope.json", "start-1.folded", "syscalls.txt"} <= {
        each.name for each in folder.iterdir()
    }


@pytest.mark.acceptance
def test_interleaved_versions_are_compared(project):
    (project.path / "old/.venv/bin").mkdir(parents=True)
    (project.path / "old/.venv/bin/python").touch()
    project.makeconftest(CONFTEST.replace("rig.install(rig.noisy(1))", "rig.install(rig.noisy(1), base=rig.noisy(2))"))
    arguments = ("--ldos-trials=4", "--ldos-block=2", "--ldos-warmup=0", "--ldos-base=./old")
    result = project.runpytest_subprocess(
        *arguments, "--ldos-profile", "--ldos-profile-rate=499", "--ldos-profiler=perf", timeout=300
    )
    result.stdout.fnmatch_lines(["*profiles compared: * frames changed for certain, see *difference.svg*"])
    folder = folder_of(project)
    assert sorted(str(each.relative_to(folder)) for each in folder.rglob("*.folded")) == [
        "base/start-1.folded",
        "base/start-2.folded",
        "head/start-1.folded",
        "head/start-2.folded",
    ]
    assert "between starts" in (folder / "difference.svg").read_text()


@pytest.mark.acceptance
def test_each_cell_is_watched_in_a_separate_sweep(project):
    project.makeconftest(CONFTEST)
    project.makepyfile(
        test_scenario="""
        import pytest

        @pytest.mark.ldos_sweep("stack.control_rate", [250, 500])
        @pytest.mark.baseline(trials=2, warmup=0)
        def test_reach(panda_stack, ldos_trials, ldos_gate):
            ldos_gate.check(ldos_trials(panda_stack))
        """
    )
    plain = project.runpytest_subprocess("--ldos-resume", timeout=300)
    plain.assert_outcomes(passed=2)
    watched = ("--ldos-profile", "--ldos-profile-rate=499", "--ldos-profiler=perf", "--ldos-resume")
    result = project.runpytest_subprocess(*watched, timeout=300)
    result.assert_outcomes(passed=2)
    folders = {each.parents[1].name for each in project.path.glob(".ldos/runs/*/*/profile/flame.svg")}
    assert folders == {f"baseline_stack.control_rate_hz_{rate}" for rate in (250, 500)}
    project.runpytest_subprocess(*watched, timeout=300).assert_outcomes(skipped=2)


@pytest.mark.acceptance
def test_watched_trials_are_not_added_to_the_history(watch):
    result = watch("--ldos-profile", "--ldos-profiler=perf", "--ldos-history=kept")
    result.stdout.fnmatch_lines(["history: 1 set of trials not added: watched, which makes them slower"])
    assert "sets of trials added" not in result.stdout.str()
