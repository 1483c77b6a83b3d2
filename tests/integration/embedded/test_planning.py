"""Planning problems on the real embedded stack, from settings to the record, and what can be wrong with them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest
import yaml

from pytest_ldos import api
from pytest_ldos.base.exit_codes import INCONCLUSIVE, INVALID, REGRESSED
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.record import Trial
from pytest_ldos.robot.stack.goals import OutcomeClass
from tests.builders.stressors import wait_until
from tests.integration.project import Project, make_other_version

SUITE = Path(__file__).parents[3] / "examples/planning/suite.yaml"
NO_WAY = "no way: joints"
THREE = ["free: joints", "table: over a low wall", NO_WAY]
METRICS = ["T1", "path_length", "tool_path", "trajectory", "waypoints"]
SCENARIO = """
import pytest

@pytest.mark.planning
def test_planning(ldos_scenario):
    ldos_scenario()
"""


def set_up(
    project: Project, problems: list[dict], *, time_limit_s: float = 0.3, trials: int = 6, more: str = ""
) -> None:
    (project.path / "test_scenario.py").unlink(missing_ok=True)
    project.write("test_planning.py", SCENARIO)
    table = yaml.safe_load(SUITE.read_text("utf-8"))
    project.write("problems.yaml", yaml.safe_dump({**table, "problems": problems}))
    project.write(
        "pyproject.toml",
        f"""
[tool.pytest.ini_options]

[tool.ldos.stack]
kind = "embedded"
stimulus = "plan"

[tool.ldos.stimulus.plan]
problems = "problems.yaml"
tool = "panda_link8"
time_limit_s = {time_limit_s}
{more}

[tool.ldos.scenarios.planning]
trials = {trials}
goals = "all"
success_rate = 0.5
""",
    )


def of_suite(names: list[str] | None = None) -> list[dict]:
    problems = yaml.safe_load(SUITE.read_text("utf-8"))["problems"]
    return [each for each in problems if names is None or each["name"] in names]


def measure(project: Project, *arguments: str) -> tuple[int, str]:
    return project.run("-m", "planning", "--ldos-traces=none", *arguments, timeout_s=900)


def test_problems_are_planned_by_several_seeds(project, leaves_nothing):
    set_up(project, of_suite(THREE))
    code, output = measure(project, "--ldos-block=6")
    assert code == 0, output
    saved = project.saved("planning")
    assert saved.stack_kind == "embedded-plan"
    assert len(saved.fingerprint.versions["plan"]) == 16
    assert [(trial.goal, trial.seed) for trial in saved.trials] == [*zip(THREE * 2, range(1, 7), strict=True)]
    assert [metric.name for metric in saved.metrics if metric.name in METRICS] == METRICS
    for trial in saved.trials:
        assert trial.outcome is (OutcomeClass.PLANNING_FAILED if trial.goal == NO_WAY else OutcomeClass.SUCCESS)
        if trial.succeeded:
            assert trial.measurements["T1"].source.name == "markers"
            assert 1 < trial.measurements["T1"].number < 1000
            assert trial.measurements["path_length"].number > 1
            assert 0.3 < trial.measurements["tool_path"].number < 10
            assert trial.measurements["waypoints"].number > 5


@pytest.mark.acceptance
def test_end_of_the_planner_names_the_problem(project, leaves_nothing):
    """It dies during the 17th of 20 problems; the plans before are kept and measured."""
    easy = [each for each in of_suite() if each["set"] == "easy"]
    set_up(project, [*easy[:16], *of_suite([NO_WAY]), *easy[16:19]], time_limit_s=100, trials=20)
    process = project.start("-m", "planning", "--ldos-warmup=0", "--ldos-traces=none", "--ldos-block=20")
    wait_until(lambda: len(recorded(project)) >= 16 or process.poll() is not None)
    (planner,) = [each for each in psutil.Process(process.pid).children(recursive=True) if each.name() == "move_group"]
    used_s = planner.cpu_times().user
    wait_until(lambda: planner.cpu_times().user > used_s + 1)  # no other problem takes so long
    planner.kill()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == INVALID, output
    words = " ".join(output.split())
    assert f"move_group was killed by SIGKILL (during '{NO_WAY}')" in words
    saved = project.saved("planning")
    assert f"(during '{NO_WAY}')" in saved.incomplete
    *planned, last = saved.trials
    assert [trial.goal for trial in planned] == [each["name"] for each in easy[:16]]
    assert sum(trial.succeeded for trial in planned) > 10
    assert all(trial.measurements["T1"].number is not None for trial in planned)
    assert (last.goal, last.outcome) == (NO_WAY, OutcomeClass.STACK_DIED)


def recorded(project: Project) -> tuple[Trial, ...]:
    files = [*project.path.glob(".ldos/runs/*/planning/trials.json")]
    return read_trials(files[0]).trials if files else ()


COLLIDING = {"name": "wall", "box": [0.2, 0.2, 0.2], "position": [0.4, 0, 0.6]}


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        ({"objects": [COLLIDING]}, ["1 of 2 problems", "goal 'wrong': its start is in collision", "wall"]),
        (
            {"goal": {"link": "panda_link8", "pose": {"position": [1.4, 0, 0.5], "orientation": [1, 0, 0, 0]}}},
            ["1 of 2 problems", "goal 'wrong': no joints bring the tip to the goal"],
        ),
        ({"goal": {"joints": {"panda_joint1": 0.0}}}, ["goal 'wrong': a joint goal must name every joint"]),
        ({"objects": [{"name": "hat", "cone": [0.1, 0.1]}]}, ["goal 'wrong': its scene: object 'hat'", "boxes"]),
        (
            {"objects": [{**COLLIDING, "position": [0.4, float("nan"), 0.6]}]},
            ["problem 'wrong'", "not a finite number"],
        ),
    ],
    ids=["start", "reach", "joints", "shape", "nan"],
)
def test_what_cannot_be_planned_is_named_before_a_trial(project, change, reasons):
    (good,) = of_suite(["free: joints"])
    set_up(project, [good, {**good, "name": "wrong", **change}])
    code, output = measure(project)
    assert code != 0
    words = " ".join(output.split())
    assert [each for each in reasons if each not in words] == []
    assert "Traceback" not in output
    assert not [*project.path.glob(".ldos/runs/*/planning/trials.json")]


@pytest.mark.acceptance
def test_a_group_that_is_unknown(project):
    set_up(project, of_suite(THREE))
    text = (project.path / "problems.yaml").read_text("utf-8")
    project.write("problems.yaml", text.replace("group: panda_arm", "group: left_arm"))
    code, output = measure(project)
    assert code != 0
    assert "3 of 3 problems cannot be planned" in " ".join(output.split())
    assert "there is no group 'left_arm'" in " ".join(output.split())


@pytest.mark.acceptance
def test_a_suite_without_problems(project):
    set_up(project, [])
    code, output = measure(project)
    assert code != 0
    assert "has no planning problem" in output


def test_file_of_problems_that_is_missing(project):
    set_up(project, of_suite(THREE))
    (project.path / "problems.yaml").unlink()
    code, output = measure(project)
    assert code not in {0, 3}, output
    assert "problems.yaml, cannot be read" in " ".join(output.split()) or "problems.yaml: no such file" in output
    assert "INTERNALERROR" not in output
    assert "Traceback" not in output


GATE = "passage: narrow gate"


@pytest.mark.acceptance
def test_time_limit_that_half_of_the_seeds_reach(project, leaves_nothing):
    """Those are failures that took the whole time; the other problem is not touched."""
    set_up(project, of_suite([THREE[0], GATE]), time_limit_s=0.25, trials=24)
    code, output = measure(project, "--ldos-block=24")
    assert code == 0, output
    of_gate = [trial for trial in project.saved("planning").trials if trial.goal == GATE]
    solved = sum(trial.succeeded for trial in of_gate)
    assert 0 < solved < len(of_gate) == 12
    for trial in of_gate:
        is_late = trial.message == "no path was found in the allowed planning time"
        assert trial.succeeded or (is_late and trial.measurements["T1"].number > 250) or "collision" in trial.message
    assert f"solved: {12 + solved} of 24; worst: {GATE} {solved} of 12" in " ".join(output.split())


@pytest.mark.acceptance
def test_changed_suite_is_not_compared_with_its_baseline(project, leaves_nothing):
    free, wall = of_suite(THREE[:2])
    options = ("--ldos-block=4", "--ldos-warmup=0")
    set_up(project, [free, wall], time_limit_s=10, trials=4)
    code, output = measure(project, *options)
    assert code == 0, output
    set_up(project, [{**free, "name": "new"}, {**wall, "objects": []}], time_limit_s=10, trials=4)
    code, output = measure(project, *options, "--ldos-strict")
    assert code == INCONCLUSIVE, output
    assert "planning: not_comparable" in output
    words = " ".join(output.split())
    assert f"new is new, {wall['name']} changed, {free['name']} is gone" in words


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_whole_suite(project, leaves_nothing):
    set_up(project, of_suite(), time_limit_s=1.0, trials=90)
    began = time.monotonic()
    code, output = measure(project, "--ldos-block=90")
    minutes = (time.monotonic() - began) / 60
    assert code == 0, output
    trials = project.saved("planning").trials
    print(f"{len(trials)} plans in {60 * minutes:.0f} s, with starting and reading")
    solvable = [trial for trial in trials if not trial.goal.startswith("no way")]
    assert len(solvable) == 84
    assert sum(trial.succeeded for trial in solvable) >= 0.9 * len(solvable)
    assert not any(trial.succeeded for trial in trials if trial.goal.startswith("no way"))
    spans = [trial.stamps_ns for trial in trials]
    rate = 60e9 * (len(trials) - 1) / (spans[-1]["result"] - spans[0]["goal_sent"])
    assert rate > 100, "plans a minute"


PLANTED = {
    "nothing": ({}, set(), set()),
    "longer paths": ({"    setup.simplifySolution(in_time)\n": ""}, {"path_length", "trajectory"}, {"T1"}),
    "slower planner": (
        {"_LONGEST_VALID_SEGMENT: Final = 0.005": "_LONGEST_VALID_SEGMENT: Final = 0.0015"},
        {"T1"},
        {"path_length", "trajectory"},
    ),
}
"""Changes of the planner by name: changed source, metrics that regress, and others that do not."""


@pytest.mark.acceptance
@pytest.mark.parametrize("name", PLANTED)
def test_planted_change_is_red_on_the_right_metric(project, leaves_nothing, name):
    """Interleaved with the unchanged planner, over the whole suite."""
    changes, worse, not_worse = PLANTED[name]
    set_up(project, of_suite(), time_limit_s=1.0, trials=90)
    project.python = make_other_version(project.path / "changed", "move_group.py", changes)
    began = time.monotonic()
    code, output = measure(project, f"--ldos-base={sys.prefix}")
    print(f"{name}: {time.monotonic() - began:.0f} s")
    (folder,) = project.path.glob(".ldos/runs/*/planning")
    head, base = read_trials(folder), read_trials(folder / "base")
    found = api.decide(head, base, api.Policy())
    print(
        "\n".join(f"  {each.metric} {each.verdict} {each.ratio:.3f}, MDE {each.mde:.2f}" for each in found.comparisons)
    )
    regressed = {each.metric for each in found.comparisons if each.verdict is api.Verdict.REGRESSED}
    assert worse <= regressed, output
    assert not regressed & not_worse, output
    assert (code == REGRESSED) is bool(worse), output
    assert all(f"({metric}" in output or f"{metric} (" in output for metric in worse)
    assert "10 stack starts" in output
