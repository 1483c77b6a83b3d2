"""The projects in ``examples`` for real systems: measured, slowed down in a file, and found slower."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pytest_ldos.host.availability import find_ros_packages
from pytest_ldos.measure.trial.artifacts import read_trials
from tests.builders.git import git
from tests.integration.project import Project, make_project

EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass(frozen=True)
class Example:
    """A project, and a change of one of its files that makes it slower.

    Attributes:
        packages: packages of ROS 2 without which it cannot run.
        change: file, text, and the text in its place.
        metric: the metric that must regress.
    """

    folder: str
    packages: tuple[str, ...]
    change: tuple[str, str, str]
    metric: str
    mark: str = "baseline"


SEGMENT = '{"ompl.manipulator.longest_valid_segment_fraction": 0.0005}'

FANUC = Example(
    folder="moveit_config",
    packages=("moveit_configs_utils", "moveit_resources_fanuc_moveit_config"),
    change=("arm.launch.py", "robot.to_dict()", f"robot.to_dict(), {SEGMENT}"),
    metric="T1mean",
)
NAVIGATION = Example(
    folder="navigation",
    packages=("nav2_bt_navigator", "nav2_controller", "nav2_loopback_sim", "nav2_planner"),
    change=("nav2.yaml", "desired_linear_vel: 1.0", "desired_linear_vel: 0.6"),
    metric="T2",
)
PICK = Example(
    folder="task_constructor",
    packages=("moveit_task_constructor_capabilities", "moveit_task_constructor_core"),
    change=("src/pick_cell/config/pick.yaml", "cartesian_step_m: 0.01", "cartesian_step_m: 0.0002"),
    metric="T1",
)
PLANNING = Example(
    folder="planning",
    packages=("moveit_configs_utils", "moveit_resources_panda_moveit_config", "moveit_ros_move_group"),
    change=(
        "planning.launch.py",
        "panda.to_dict()",
        'panda.to_dict(), {"ompl.panda_arm.longest_valid_segment_fraction": 0.0005}',
    ),
    metric="T1",
    mark="planning",
)


SEEDED = replace(
    PLANNING,
    packages=(*PLANNING.packages, "ldos_planner"),
    change=(
        "planning.launch.py",
        "panda.to_dict()",
        'panda.to_dict(), {"ompl.planning_plugins": ["ldos_planner/OMPLPlanner"]}',
    ),
)
EACH_ONCE = ("--ldos-trials=30", "--ldos-max-trials=30", "--ldos-block=30", "--ldos-warmup=0")
WHOLE_SUITE = {'"problems.yaml"': '"suite.yaml"', "success_rate = 0.9": "success_rate = 0.7"}


def needs(example: Example, stack: str) -> object:
    found = find_ros_packages(example.packages)
    skipped = pytest.mark.skipif(not found.ok, reason=found.reason or "installed")
    return pytest.param(example, marks=[skipped, pytest.mark.stack(stack)], id=example.folder)


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "example",
    [
        needs(FANUC, "a Fanuc by its MoveIt configuration"),
        needs(NAVIGATION, "Nav2 with its loopback simulator"),
        needs(PICK, "MoveIt Task Constructor"),
        needs(PLANNING, "planning problems for MoveIt's Panda"),
    ],
)
def test_slower_example_is_red(tmp_path, example):
    project = committed(tmp_path, example)
    name, before, after = example.change
    change(project, name, {before: after})
    git(project.path, "commit", "--quiet", "--all", "--message=Slower")
    code, output = project.run("-m", example.mark, "--ldos-base=HEAD~1", timeout_s=1500)
    assert code == 10, output
    assert f"{example.metric} (" in output
    assert "regressed" in output
    print(output)


@pytest.mark.acceptance
@pytest.mark.parametrize("example", [needs(PLANNING, "the suite of planning problems in MoveIt")])
def test_moveit_accepts_and_solves_the_suite(tmp_path, example):
    """Before anything is measured, MoveIt finds each start free and each goal reachable, however narrow."""
    project = committed(tmp_path, example)
    change(project, "pyproject.toml", WHOLE_SUITE)
    code, output = project.run("-m", "planning", *EACH_ONCE)
    assert code == 0, output
    trials = project.saved("planning").trials
    assert len(trials) == 30
    assert not any(trial.succeeded for trial in trials if trial.goal.startswith("no way"))


@pytest.mark.acceptance
@pytest.mark.parametrize("example", [needs(SEEDED, "planning problems with seeds")])
def test_equal_seeds_give_equal_plans(tmp_path, example):
    """To poses, too, whose inverse kinematics begins again from other joints."""
    project = committed(tmp_path, example)
    change(project, "pyproject.toml", WHOLE_SUITE)
    name, before, after = example.change
    change(project, name, {before: after})
    git(project.path, "commit", "--quiet", "--all", "--message=Seeds")
    code, output = project.run("-m", "planning", "--ldos-base=HEAD", *EACH_ONCE)
    assert "interleaved" in output, (code, output)
    folder = next(project.path.glob(".ldos/runs/*/planning"))
    pairs = [*zip(read_trials(folder).trials, read_trials(folder / "base").trials, strict=True)]
    assert sum(one.succeeded != other.succeeded for one, other in pairs) <= 2, "near the time limit"
    lengths = [
        [each.measurements["path_length"].number for each in pair]
        for pair in pairs
        if all(each.succeeded for each in pair)
    ]
    assert len(lengths) > 20
    assert [one == other for one, other in lengths] == [True] * len(lengths), lengths


@pytest.mark.acceptance
@pytest.mark.parametrize("example", [needs(PLANNING, "planning problems that MoveIt cannot take")])
@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            "{joints: {panda_joint1: 1.2",
            "{joints: {panda_joint: 1.2",
            "the robot has no joint 'panda_joint': did you mean",
        ),
        ("group: panda_arm", "group: panda_leg", "the robot has no group 'panda_leg'"),
        ("frame: world", "frame: table", "MoveIt does not take the scene"),
        ("[0.45, 0.35, 0.4]", "[1.45, 0.35, 0.4]", "'over a table': its goal cannot be reached: NO_IK_SOLUTION"),
    ],
    ids=["joint", "group", "frame", "reach"],
)
@pytest.mark.parametrize("frame", ["world", "panda_link0"])
def test_problem_that_moveit_cannot_take_is_named(tmp_path, example, before, after, words, frame):
    """Also without TF, in the frame of a link."""
    project = committed(tmp_path, example)
    texts = {before: after} if before == "frame: world" else {"frame: world": f"frame: {frame}", before: after}
    change(project, "problems.yaml", texts)
    _, output = project.run("-m", "planning", "--ldos-trials=4", "--ldos-max-trials=4", "--ldos-warmup=0")
    assert words in output, output
    assert "Traceback" not in output
    assert "SIGABRT" not in output


def change(project: Project, name: str, texts: dict[str, str]) -> None:
    file = project.path / name
    changed = file.read_text("utf-8")
    for before, after in texts.items():
        assert before in changed
        changed = changed.replace(before, after)
    file.write_text(changed, "utf-8")


def committed(folder: Path, example: Example) -> Project:
    """A repository with the example, as its only commit."""
    path = folder / example.folder
    shutil.copytree(EXAMPLES / example.folder, path)
    git(path, "init", "--quiet", "--initial-branch=main")
    (path / ".gitignore").write_text(".ldos/\nbuild/\ninstall/\nlog/\n", "utf-8")
    git(path, "add", ".")
    git(path, "commit", "--quiet", "--message=An example")
    return Project(path, {**make_project(folder).environment, "LDOS_STACK": "ros2"})
