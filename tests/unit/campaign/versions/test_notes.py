"""Notes on built versions: differing packages and distributions, and stale installs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.build import describe_stale
from pytest_ldos.campaign.versions.version import Version, describe_distros, describe_packages
from pytest_ldos.robot.stack.protocol import Installation
from tests.builders.colcon import add_package
from tests.builders.ros import add_packages


def version(*packages, distro="jazzy", is_built=True) -> Version:
    return Version(
        role=Role.BASE,
        name="",
        commit="",
        installation=Installation(environment={"ROS_DISTRO": distro}),
        packages=frozenset(packages) if is_built else None,
    )


def test_packages_of_only_one_version():
    (note,) = describe_packages(version("arm", "arm_planner"), version("arm", "arm_planning"))
    assert note == "packages of the workspaces differ: only base has arm_planner; only head has arm_planning"
    assert describe_packages(version("arm"), version("arm")) == ()
    assert describe_packages(version("arm"), version(is_built=False)) == ()


def test_a_base_of_another_distribution():
    (note,) = describe_distros(version(distro="humble"), version())
    assert note.startswith("the base runs on ROS 2 humble, head on jazzy")
    assert describe_distros(version(), version()) == ()


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Path:
    """A workspace with an up-to-date installed package."""
    workspace = tmp_path / "ros_ws"
    add_package(workspace, "arm_planner")
    prefix = add_packages(workspace / "install/arm_planner", ["arm_planner"])
    note = prefix / "share/colcon-core/packages/arm_planner"
    note.parent.mkdir(parents=True)
    note.touch()
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(prefix))
    _change(workspace / "src/arm_planner/value", note, -1)
    for file in (workspace / "src/arm_planner").iterdir():
        _change(file, note, -1)
    return workspace


def _change(file: Path, note: Path, seconds: int) -> None:
    """Makes a file newer than the install."""
    time_ns = note.stat().st_mtime_ns + seconds * 1_000_000_000
    os.utime(file, ns=(time_ns, time_ns))


def test_newer_sources_are_noted(installed):
    note = installed / "install/arm_planner/share/colcon-core/packages/arm_planner"
    assert describe_stale(installed.parent, ("ros_ws",)) == ()
    _change(installed / "src/arm_planner/value", note, 1)
    (expected,) = describe_stale(installed.parent, ("ros_ws",))
    assert expected.startswith("the sources of arm_planner are newer than what is installed and was measured")
    assert expected.endswith("or measure with --ldos-build")


def test_other_files_are_ignored(installed):
    note = installed / "install/arm_planner/share/colcon-core/packages/arm_planner"
    (installed / "src/arm_planner/__pycache__").mkdir()
    for name in (".swp", "__pycache__/launch.pyc"):
        file = installed / "src/arm_planner" / name
        file.touch()
        _change(file, note, 1)
    assert describe_stale(installed.parent, ("ros_ws", "absent")) == ()


def test_a_package_that_is_not_sourced_is_not_compared(installed, monkeypatch):
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    assert describe_stale(installed.parent, ("ros_ws",)) == ()
