"""Scripts and workflows install what the table of distributions says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rosbags.typesys import Stores

from pytest_ldos.base.distros import DEFAULT, DISTROS
from pytest_ldos.host.ros import chosen_rmw, remedy_for_packages

ROOT = Path(__file__).parents[3]


def text(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


def test_the_script_that_installs_ros_takes_the_default():
    given = dict(re.findall(r"(?m)^(distro|ubuntu|codename|python_of_distro)=(\S+)$", text(".ci/ros2-setup")))
    assert given == {
        "distro": DEFAULT.name,
        "ubuntu": DEFAULT.ubuntu,
        "codename": DEFAULT.codename,
        "python_of_distro": DEFAULT.python,
    }


@pytest.mark.parametrize(
    ("file", "there"),
    [
        (".github/workflows/ros.yml", f"image: ros:{DEFAULT.name} "),
        ("lab/health/check", f"/opt/ros/{DEFAULT.name}/setup.sh"),
        ("lab/phases/20-ros2", DEFAULT.title),
        ("lab/phases/20-ros2", f"Gazebo {DEFAULT.gazebo.capitalize()}"),
        ("lab/bootstrap", f'"ubuntu {DEFAULT.ubuntu}"'),
        ("Makefile", f"(Ubuntu {DEFAULT.ubuntu})"),
        ("ros_ws/src/ldos_bringup/launch/stack.launch.py", f"ros-{DEFAULT.name}-tracetools-launch"),
    ],
)
def test_what_is_no_code_of_ours_names_the_default(file, there):
    assert there in text(file)


@pytest.mark.parametrize("distro", DISTROS.values(), ids=DISTROS)
def test_each_has_messages_and_a_middleware(distro):
    assert Stores(distro.messages)
    assert chosen_rmw({"ROS_DISTRO": distro.name}) == distro.rmw


def test_remedies_name_the_default_where_none_is_there():
    assert f"ros-{DEFAULT.name}-rclpy" in remedy_for_packages(["rclpy"], environment={})
