"""What a run says before it measures."""

from __future__ import annotations

import os

from tests.builders.ros import add_packages, add_python


def test_text_of_others_reaches_the_terminal_without_control_characters(run, project, monkeypatch):
    prefix = add_packages(project.path / "ros", ["rclcpp"])
    modules = add_python(prefix, ["launch", "launch_ros", "rclpy", "lark"])
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}:{modules}")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_\x1b[31mred_cpp")
    output = run("--ldos-stack=ros2", "--ldos-trials=2", "--ldos-warmup=0").stdout.str()
    assert "ldos: cannot measure: middleware rmw_\\x1b[31mred_cpp is not installed" in output
    assert "\x1b[31mred" not in output
