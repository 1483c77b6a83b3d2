"""From trials to the colour of the test and the exit status of the run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from pytest_ldos.judge.gate import reasons as why
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.show.report.reasons import describe_reason
from tests.builders.busy import foreign_load
from tests.plugin.conftest import SCENARIO

FAST = ("--ldos-trials=10", "--ldos-warmup=0")


def test_a_first_run_records_a_baseline_and_a_second_compares(run):
    first = run(*FAST)
    assert first.ret == 0
    first.stdout.fnmatch_lines(
        ["*baseline: no_baseline; 10 of 10*", "*recorded as the first baseline of this host class*"]
    )
    second = run(*FAST, stack="noisy(2)")
    assert second.ret == 0
    second.stdout.fnmatch_lines(["*baseline: passed; 10 of 10*"])


def test_a_slower_planner_is_red_with_exit_status_10_and_keeps_its_trace(run, record, project):
    record(*FAST)
    slower = run(*FAST, stack="noisy(2, planning=3.0)")
    assert slower.ret == 10
    slower.stdout.fnmatch_lines(
        [
            "*scenario 'baseline': regressed*",
            "*T1 (planning latency) regressed: +*",
            "*T1 planning latency: regressed*",
            "*median * ms (baseline * ms)*",
            "*change * interval*",
            "*reported from *floor*",
            "*MDE*",
            "*trace: *trace*",
            "*1 failed*",
        ]
    )
    assert "Traceback" not in slower.stdout.str()
    assert len(list(project.path.glob(".ldos/runs/*/baseline/trace/metadata"))) == 1


def test_irregular_loop_is_red(run, record):
    record(*FAST)
    assert run(*FAST, stack="noisy(2, jitter=20.0)").ret == 10


def test_failures_are_red_without_any_baseline(run):
    result = run(*FAST, stack="lambda i: Motion(error_code=-31 if i == 3 else 1, message='no joints reach it')")
    assert result.ret == 10
    result.stdout.fnmatch_lines(
        [
            "*9 of 10 trials succeeded, 100 % are expected*",
            "*trial 4 planning_failed (MoveIt code -31): no joints reach it*",
        ]
    )


def test_without_a_baseline_a_missed_success_rate_comes_first(run):
    """Three of ten failed while one is allowed: the possible chance is reported before the missing baseline."""
    stack = "lambda i: Motion(error_code=-31 if i in (3, 5, 7) else 1, message='no joints reach it')"
    result = run(*FAST, "--ldos-success-rate=0.9", "--ldos-strict", stack=stack)
    assert result.ret == 12
    printed = result.stdout.str()
    short = printed.index(describe_reason(why.ShortOfSuccessRate(7, 10, 0.9)))
    assert short < printed.index(describe_reason(why.BaselineMissing()))


def test_discarded_events_are_invalid_with_exit_status_11_and_never_a_baseline(run, project):
    result = run(*FAST, "--ldos-update-baseline", stack="noisy(1), discarded=77")
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*baseline: invalid*", "*77 events lost while it was measured*"])
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))


def test_too_few_trials_are_inconclusive_and_green_unless_strict(run, record):
    record("--ldos-trials=2", "--ldos-warmup=0")
    relaxed = run("--ldos-trials=2", "--ldos-warmup=0", stack="noisy(2)")
    assert relaxed.ret == 0
    relaxed.stdout.fnmatch_lines(
        [
            "*baseline: inconclusive*",
            "*2 trials against 2 are too few to compare*: record the baseline again with 8 or more*",
            "*record the baseline again*--ldos-update-baseline (--ldos-trials=8 or more)*",
        ]
    )
    relaxed.stdout.no_fnmatch_line("*--ldos-max-trials*")
    assert run("--ldos-trials=2", "--ldos-warmup=0", "--ldos-strict", stack="noisy(2)").ret == 12


def test_an_ordinary_failure_keeps_pytests_own_exit_status(run, project):
    project.makepyfile(test_other="def test_plain():\n    assert False\n")
    both = run("--ldos-trials=5", "--ldos-warmup=0", stack="lambda i: Motion(error_code=-31)")
    assert both.ret == 1


def test_dead_stack_is_red_and_the_next_scenario_runs(run, project):
    project.makepyfile(
        test_two="""
        import pytest

        @pytest.mark.msg_load
        def test_second(panda_stack, ldos_trials, ldos_gate):
            ldos_gate.check(ldos_trials(panda_stack))
        """
    )
    result = run(
        *FAST,
        stack="lambda i: Motion(error_code=None, message='simulator was killed by SIGKILL') if i == 2 else Motion()",
    )
    assert result.ret == 10
    result.stdout.fnmatch_lines(
        ["*baseline: regressed; 2 of 3*", "*stack_died*SIGKILL*", "*msg_load: regressed; 2 of 3*"]
    )


def test_stack_that_does_not_start_is_infra_in_every_report(project, forked, monkeypatch):
    """The reports are those that the environment names."""
    monkeypatch.setenv("LDOS_REPORT", "a.md,b.json")
    project.makeconftest(
        """
        from contextlib import contextmanager
        from pytest_ldos.base.errors import BringUpFailed
        from pytest_ldos.measure.trial import rig

        @contextmanager
        def fail(spec, folder, *, on_waiting, **settings):
            raise BringUpFailed("the stack did not start: simulator | ended with exit code 3", remedy="look at its log")
            yield

        rig.open_rig = fail
        """
    )
    result = forked.run(project.path, "--junitxml=junit.xml")
    assert result.ret == 11
    result.stdout.fnmatch_lines(
        ["*scenario 'baseline': infra*", "*exit code 3*", "*look at its log*", "*baseline: infra*"]
    )
    result.stdout.no_fnmatch_line("*During handling*")
    assert "Traceback" not in result.stdout.str()
    properties = [
        (each.get("name"), each.get("value")) for each in ET.parse(project.path / "junit.xml").iter("property")
    ]
    assert properties == [("ldos.scenario", "baseline"), ("ldos.verdict", "infra")]
    report = (project.path / "a.md").read_text("utf-8")
    assert "- the stack did not start: simulator \\| ended with exit code 3\n" in report
    plain = json.loads((project.path / "b.json").read_text("utf-8"))
    assert (plain["verdict"], plain["sections"][0]["head"]) == ("infra", None)


def test_unjudged_trials_are_reported(run, project):
    project.makepyfile(
        test_scenario="""
        import pytest

        @pytest.mark.baseline
        def test_reach(panda_stack, ldos_trials):
            ldos_trials(panda_stack)
        """
    )
    result = run("--ldos-trials=2", "--ldos-warmup=0")
    result.stdout.fnmatch_lines(["*never judged*ldos_gate.check*"])


def test_run_without_a_commit_has_a_reason(run, project, repository, monkeypatch):
    repository.commit()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    result = run("--ldos-trials=2")
    assert result.ret == 0
    cure = f"git config --global --add safe.directory {project.path}"
    result.stdout.fnmatch_lines(
        [f"*this run: its commit is unknown: detected dubious ownership in repository at*{cure}"]
    )
    (file,) = project.path.glob(".ldos/runs/*/baseline/trials.json")
    saved = read_trials(file)
    assert saved.commit == ""
    assert saved.commit_unknown.endswith(cure)


@pytest.mark.acceptance
def test_inherited_variables_are_differences_and_withheld_ones_are_recorded(run, project, monkeypatch):
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")
    monkeypatch.setenv("PYTHONTRACEMALLOC", "1")
    run(*FAST).stdout.fnmatch_lines(["*inherited by the measured processes:*GLIBC_TUNABLES glibc.malloc.arena_max=1*"])
    (file,) = project.path.glob(".ldos/baselines/**/baseline.json")
    assert "PYTHONTRACEMALLOC" in read_trials(file).withheld
    monkeypatch.delenv("GLIBC_TUNABLES")
    result = run(*FAST, stack="noisy(2)")
    result.stdout.fnmatch_lines(["*the environment changed:*GLIBC_TUNABLES glibc.malloc.arena_max=1 → unset*"])


def test_a_corrupt_baseline_is_invalid(run, record, project):
    record(*FAST)
    (file,) = project.path.glob(".ldos/baselines/**/baseline.json")
    file.write_text(file.read_text()[:400])
    result = run(*FAST, "--ldos-update-baseline", stack="noisy(2)")
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*the baseline cannot be read*is no JSON*", "*--ldos-update-baseline*"])
    assert run(*FAST, stack="noisy(3)").ret == 0


def test_a_foreign_baseline_is_not_comparable(run, record, project):
    record(*FAST)
    (file,) = project.path.glob(".ldos/baselines/**/baseline.json")
    elsewhere = project.path / "baselines/embedded/another-machine/baseline.json"
    elsewhere.parent.mkdir(parents=True)
    text = file.read_text()
    own = json.loads(text)["fingerprint"]["cpu_model"]
    elsewhere.write_text(text.replace(own, "Another Machine"))
    file.unlink()
    result = run(*FAST, "--ldos-strict", "--ldos-baselines=baselines", stack="noisy(2)")
    assert result.ret == 12
    result.stdout.fnmatch_lines(["*baseline: not_comparable*", "*host class another-machine*"])


def test_the_example_of_a_flood(run, project):
    """A load fixture gives its proof; one that was not reached makes the scenario invalid (`test_base`)."""
    project.makepyfile(
        test_scenario="""
        import pytest
        from tests.fakes.loads import install_flood

        @pytest.fixture(autouse=True)
        def made_up(monkeypatch):
            install_flood(monkeypatch, lambda site: 3999.0)

        @pytest.mark.msg_load
        def test_reach_survives_a_flood(panda_stack, dds_flood, ldos_trials, ldos_gate):
            with dds_flood(publishers=4, rate_hz=1000, size_bytes=1024) as flood:
                trials = ldos_trials(panda_stack, goals="reach", n=3)
            assert flood.proof.rate_hz >= 3960
            ldos_gate.check(trials)
        """
    )
    result = run("--ldos-warmup=0")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*msg_load: no_baseline; 3 of 3*", "*DDS flood: 3999 of 4000 msg/s sent*"])


HOMELESS = """
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.lines import MotionOutcome
from tests.fakes.rig import FakeStack, install, noisy

move = FakeStack.move

def stuck(self, goal, *, goal_id, trial, **more):
    if trial is not None:
        return move(self, goal, goal_id=goal_id, trial=trial, **more)
    said = "the controller took longer than 2.8 s"
    return MotionOutcome(goal_id=goal_id, outcome=OutcomeClass.TIMED_OUT, error_code=-6, message=said, stamps_ns={})

FakeStack.move = stuck
install(noisy(1))
"""


@pytest.mark.acceptance
@pytest.mark.parametrize("warmup", [0, 1])
def test_failed_way_home_is_reported_once_in_each_place(project, warmup):
    """After its first trial, or before it: in the test's failure, and in the summary."""
    project.makeconftest(HOMELESS)
    result = project.runpytest_subprocess(f"--ldos-warmup={warmup}", "--ldos-report=r.md", timeout=300)
    assert result.ret == 11
    shown = result.stdout.str()
    failure, _, summary = shown.partition("= ldos on ")
    printed = "the arm could not return home (timed_out: the controller took longer than 2.8 s)"
    assert failure.count(f"baseline: {printed}; trying again") == 1
    for part in (failure, summary):
        assert part.count(f"{printed}, at the second attempt, too") == 1
    assert shown.count(printed) == 3
    has_numbers = "planning latency " in summary
    assert has_numbers is (warmup == 0)
    assert ("| T1 planning latency |" in (project.path / "r.md").read_text("utf-8")) is has_numbers
    assert "score: none" not in shown


FEW = ("--ldos-trials=4", "--ldos-warmup=2")


ALL_NAMED = """
from tests.builders.busy import name_all_others
name_all_others()
"""


@pytest.mark.acceptance
def test_interference_is_named_before_the_first_trial_and_with_a_failure(run, project):
    project.makepyfile(test_scenario=SCENARIO + ALL_NAMED)
    with foreign_load(project.path) as name:
        result = run(*FEW, "--ldos-report=out.json", stack="lambda i: Motion(error_code=-31), motion_s=0.15")
    assert result.ret == 10
    result.stdout.fnmatch_lines(
        [
            f"*others used * CPUs: *{name}*(before the first trial)*",
            "*0 of 4 trials succeeded, 100 % are expected*",
            f"*meanwhile, others used * CPUs: *{name}*",
        ]
    )
    section = json.loads((project.path / "out.json").read_text())["sections"][0]
    assert name in section["reasons"][1]
    assert name in section["head"]["surroundings"]["programs"]


DEAD = """
import time
from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.measure.trial import rig

def open_rig(*given, **more):
    time.sleep(0.7)
    raise BringUpFailed("no controller answers", remedy="look at the logs")

rig.open_rig = open_rig
"""


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("conftest", "reason"),
    [
        pytest.param(
            HOMELESS.replace("noisy(1)", "noisy(1), motion_s=0.6"),
            "the arm could not return home",
            marks=pytest.mark.acceptance,
            id="invalid",
        ),
        pytest.param(DEAD, "no controller", id="infra"),
    ],
)
def test_foreign_load_is_named_if_nothing_could_be_judged(project, conftest, reason):
    project.makeconftest(conftest + ALL_NAMED)
    with foreign_load(project.path) as name:
        result = project.runpytest_subprocess("--ldos-warmup=0", "--ldos-report=r.md", timeout=300)
    assert result.ret == 11
    result.stdout.fnmatch_lines([f"*{reason}*", f"*meanwhile, others used * CPUs: *{name}*"])
    assert name in (project.path / "r.md").read_text("utf-8").replace("\\", "")
