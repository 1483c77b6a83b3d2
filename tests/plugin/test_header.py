"""The header of a measuring run."""

from __future__ import annotations

import os

import pytest

from tests.builders.ros import add_packages, add_python


def test_foreign_text_is_escaped_in_the_header(run, project, monkeypatch):
    prefix = add_packages(project.path / "ros", ["rclcpp"])
    modules = add_python(prefix, ["launch", "launch_ros", "rclpy", "lark"])
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}:{modules}")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_\x1b[31mred_cpp")
    output = run("--ldos-stack=ros2", "--ldos-trials=2", "--ldos-warmup=0").stdout.str()
    assert "ldos: cannot measure: middleware rmw_\\x1b[31mred_cpp is not installed" in output
    assert "\x1b[31mred" not in output


FEW = ("--ldos-trials=6", "--ldos-warmup=1")


def test_estimate_from_earlier_runs_is_printed_before_measuring(run, project, monkeypatch):
    """The durations of phases are shown on request."""
    first = run(*FEW)
    monkeypatch.setenv("LDOS_LEFT_OUT", "ldos_planner: CMake does not find ompl")
    second = run(*FEW, "-v")
    first.stdout.fnmatch_lines(
        ["ldos: about 60 s: 2 stack starts of 16 s, 6 trials of 4 s (a guess*)", "*trial 1 of 6*"]
    )
    first.stdout.no_fnmatch_line("*took * s*")
    second.stdout.fnmatch_lines(["ldos: left out of ros_ws: ldos_planner: CMake does not find ompl"])
    second.stdout.fnmatch_lines(
        [
            "ldos: about * s: 2 stack starts of * s, 6 trials of * s (as measured here)",
            "baseline: took * s: *trials * s*",
        ]
    )
    assert len(list(project.path.glob(".ldos/runs/*/baseline/durations.json"))) == 2


@pytest.mark.acceptance
def test_the_estimate_of_an_interleaved_run_counts_its_blocks_and_those_that_may_be_added(run, project):
    python = project.path / "old/.venv/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    result = run(*FEW, "--ldos-base=./old", "--ldos-max-trials=12")
    result.stdout.fnmatch_lines(
        [
            "ldos: about 3 min, up to 5 min with trials that are added: 6 stack starts of 16 s, 12 trials of 4 s (a guess*)"
        ]
    )
    result.stdout.fnmatch_lines(["* stack starts in * s (starting * s, *trials * s*stopping * s)*"])
