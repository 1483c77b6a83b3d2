"""``--ldos-base`` and ``--ldos-build`` on ROS 2, as a user meets them: colcon is real, the stack is made up."""

from __future__ import annotations

import os

import pytest

from pytest_ldos.measure.trial.artifacts import read_trials
from tests.builders.colcon import COMPILED, add_launch_file, add_package, find_colcon
from tests.builders.ros import add_packages

COLCON = find_colcon()
pytestmark = pytest.mark.skipif(not COLCON, reason="colcon is not installed (make setup installs it)")

SETTINGS = """
[tool.pytest.ini_options]
addopts = "-p no:cacheprovider"
[tool.ldos.base]
workspace = "ros_ws"
[tool.ldos.stack]
kind = "ros2"
launch_file = "arm_bringup/arm.launch.py"
goals = "goals.yaml"
"""

GOALS = "home: {joints: {joint_1: 0.0}}\ngoal_sets: {reach: [{name: reach, joints: {joint_1: 1.0}}]}\n"

ABLE = """
from pytest_ldos.campaign.versions import find as built
from pytest_ldos.host.availability import Availability
built.ros2_available = lambda *_: Availability(True)
"""
"""ROS 2 itself is made up, too."""


@pytest.fixture
def workspace(project, tmp_path_factory, monkeypatch):
    for name in ("COLCON_PREFIX_PATH", "CMAKE_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", os.environ["PATH"] + os.pathsep + COLCON)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(add_packages(tmp_path_factory.mktemp("underlay"), ["arm_msgs"])))
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    project.makepyprojecttoml(SETTINGS)
    (project.path / "goals.yaml").write_text(GOALS)
    folder = project.path / "ros_ws"
    add_launch_file(folder, "arm_bringup", "arm.launch.py")
    return folder


@pytest.fixture
def repository(project, workspace, repository):
    (project.path / ".gitignore").write_text(".ldos\n__pycache__\nconftest.py\n/*.xml\n")
    project.makepyfile(able=ABLE)
    with (project.path / "test_scenario.py").open("a") as test:
        test.write("\n\nimport able  # noqa\n")
    repository.commit()
    return repository


@pytest.mark.acceptance
@pytest.mark.acceptance
def test_equal_workspaces_are_one_build_and_the_verdict_names_it(run, repository):
    repository.commit(README="no part of the workspace")
    result = run("--ldos-base=HEAD~1", "--ldos-trials=1", "--ldos-block=1")
    result.stdout.fnmatch_lines(
        [
            "*ldos: stack ros2, whose workspace is built before it is measured*",
            "*ldos: interleaved with base HEAD~1*",
            "*building base HEAD~1 (*: the first time takes minutes*",
            "*building base HEAD~1 (*: package 1 of 1, arm_bringup*",
            "*A/A: head and base are one build, because their workspaces are equal*",
        ]
    )
    result.stdout.no_fnmatch_line("*building head*")


@pytest.mark.acceptance
def test_head_of_a_revision_is_built_from_it_not_from_the_checkout(run, project, repository, workspace):
    old = repository.git("rev-parse", "--short=12", "HEAD")
    add_package(workspace, "arm_planner", more="message(FATAL_ERROR lost)")
    repository.commit()
    result = run(f"--ldos-head={old}", "--ldos-trials=1")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*ldos: stack ros2, whose workspace is built before it is measured*",
            f"*ldos: stack of head {old}; tests and settings of this checkout*",
            f"*building head {old}: package 1 of 1, arm_bringup*",
        ]
    )
    assert [read_trials(file).commit for file in project.path.glob(".ldos/runs/*/baseline/trials.json")] == [old]


@pytest.mark.acceptance
def test_differing_packages_are_shown_with_the_verdict(run, repository, workspace):
    add_package(workspace, "arm_planner")
    repository.commit()
    printed = " ".join(run("--ldos-base=HEAD~1", "--ldos-trials=1", "--ldos-block=1").stdout.str().split())
    assert "building head (" in printed
    assert "packages of the workspaces differ: only head has arm_planner" in printed
    assert "A/A" not in printed


@pytest.mark.acceptance
def test_a_base_that_does_not_compile_is_infra_with_exit_status_11(run, repository, workspace):
    (add_package(workspace, "arm_planner", more=COMPILED) / "main.c").write_text("int main(void) { return lost; }")
    broken = repository.commit()
    add_package(workspace, "arm_planner")
    repository.commit()
    result = run("--ldos-base=HEAD~1", "--ldos-trials=1")
    assert result.ret == 11
    result.stdout.fnmatch_lines(
        [
            "*scenario 'baseline': infra*",
            f"*base HEAD~1 ({broken}) cannot be built: package arm_planner failed*",
            "*lost*undeclared*",
            "*baseline: infra; nothing measured*",
        ]
    )


def test_head_is_built_on_request_and_otherwise_reported_as_stale(run, project, workspace, repository, monkeypatch):
    """Without --ldos-build, the sourced workspace is measured, and the verdict names stale packages."""
    first = run("--ldos-trials=1", "--ldos-build")
    first.stdout.fnmatch_lines(["*building head (*: package 1 of 1, arm_bringup*"])
    (prefix,) = project.path.glob(".ldos/bases/workspace-*/install")
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{prefix / 'arm_bringup'}:{os.environ['AMENT_PREFIX_PATH']}")
    assert "newer than what is installed" not in run("--ldos-trials=1").stdout.str()
    os.utime(workspace / "src/arm_bringup/launch/arm.launch.py")
    printed = " ".join(run("--ldos-trials=1").stdout.str().split())
    assert "the sources of arm_bringup are newer than what is installed and was measured" in printed
    assert "newer than what is installed" not in run("--ldos-trials=1", "--ldos-build").stdout.str()


@pytest.mark.parametrize(
    "asked", [["--ldos-build"], ["--ldos-build", "--ldos-stack=ros2"], ["--ldos-head=HEAD", "--ldos-stack=ros2"]]
)
def test_workspace_without_ros_is_infra_and_no_other_stack_is_measured(run, project, monkeypatch, asked):
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    result = run("--ldos-trials=1", *asked)
    assert result.ret == 11
    result.stdout.fnmatch_lines(["*a ROS 2 workspace is to be built, and no ROS 2 is sourced*", "*= ldos on ros2 =*"])
