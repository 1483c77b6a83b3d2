"""Scripts and workflows agree with the table of distributions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from rosbags.typesys import Stores

from pytest_ldos.base.ros2 import DEFAULT, DISTROS
from pytest_ldos.host.availability import chosen_rmw, remedy_for_packages

ROOT = Path(__file__).parents[3]


def text(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


def test_install_script_has_the_same_table():
    table = re.search(r"(?m)^distros='\n(.*?)^'", text(".ci/ros2-setup"), re.DOTALL)
    assert table is not None
    rows = [line.split()[:4] for line in table[1].splitlines()]
    assert rows == [[each.name, each.ubuntu, each.codename, each.python] for each in DISTROS.values()]
    assert rows[0][0] == DEFAULT.name


def test_ros_workflow_covers_each_distribution():
    job = yaml.safe_load(text(".github/workflows/ros.yml"))["jobs"]["mock"]
    rows = job["strategy"]["matrix"]["include"]
    assert [(row["distro"], row["tried"]) for row in rows] == [
        (each.name, each.was_measured) for each in DISTROS.values()
    ]
    assert job["container"]["image"] == "ros:${{ matrix.distro }}"
    assert job["continue-on-error"] == "${{ !matrix.tried }}"


def test_wheels_cover_each_python():
    settings = tomllib.loads(text("pyproject.toml"))
    (numbers,) = re.findall(r"cp3\{([0-9,]+)\}", settings["tool"]["cibuildwheel"]["build"])
    for distro in DISTROS.values():
        assert distro.python.removeprefix("3.") in numbers.split(",")


@pytest.mark.parametrize("distro", DISTROS.values(), ids=DISTROS)
def test_ros_extra_requires_a_compatible_pytest(distro):
    extra = tomllib.loads(text("pyproject.toml"))["project"]["optional-dependencies"]["ros2"]
    asked = [Requirement(each) for each in extra if each.startswith("pytest")]
    (found,) = (
        each for each in asked if each.marker is None or each.marker.evaluate({"python_version": distro.python})
    )
    assert found.specifier == Requirement(distro.pytest).specifier


@pytest.mark.parametrize(
    ("file", "there"),
    [
        ("lab/health/check", f"/opt/ros/{DEFAULT.name}/setup.sh"),
        ("lab/phases/20-ros2", DEFAULT.title),
        ("lab/phases/20-ros2", f"Gazebo {DEFAULT.gazebo.capitalize()}"),
        ("lab/bootstrap", f'"ubuntu {DEFAULT.ubuntu}"'),
        ("Makefile", f"(Ubuntu {DEFAULT.ubuntu})"),
        ("ros_ws/src/ldos_bringup/launch/stack.launch.py", f"ros-{DEFAULT.name}-tracetools-launch"),
    ],
)
def test_other_files_name_the_default(file, there):
    assert there in text(file)


@pytest.mark.parametrize("distro", DISTROS.values(), ids=DISTROS)
def test_each_has_messages_and_a_middleware(distro):
    assert Stores(distro.messages)
    assert chosen_rmw({"ROS_DISTRO": distro.name}) == distro.rmw


def test_remedies_name_the_default_distribution(monkeypatch):
    monkeypatch.setattr("pytest_ldos.host.availability.installed_distros", lambda *_: [])
    assert f"ros-{DEFAULT.name}-rclpy" in remedy_for_packages(["rclpy"], environment={})
