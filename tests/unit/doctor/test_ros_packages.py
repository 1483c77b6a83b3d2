"""Checks of ROS 2, on fake installations."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_ldos.doctor.changes import Status
from pytest_ldos.doctor.check_ros import (
    PROBES,
    check_distro,
    check_gazebo_packages,
    check_python,
    check_rmw,
    check_stack_packages,
    check_tracetools,
    check_workspace,
)
from pytest_ldos.doctor.diagnose import diagnose
from pytest_ldos.robot.stack.ros2.installed import PANDA, needed_packages
from pytest_ldos.robot.stack.ros2.state import GAZEBO_PACKAGES
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import Simulation
from tests.builders.machine import add_program, build_machine
from tests.builders.ros import OTHER_PYTHON, add_packages, add_python, sourced

OK, WARNING, ERROR = Status.OK, Status.WARNING, Status.ERROR
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@pytest.fixture
def prefix(tmp_path):
    return add_packages(
        tmp_path / "opt/ros/jazzy",
        [*needed_packages(StackSpec()), *PANDA, *GAZEBO_PACKAGES, *PROBES, "ldos_planner", "rmw_fastrtps_cpp"],
    )


def ros_machine(tmp_path, prefix, *, stack="auto", ros2=None, python_path=(), **variables):
    environment = {"PATH": PATH, **sourced(prefix, **variables)}
    return build_machine(tmp_path, environment=environment, stack=stack, ros2=ros2 or {}, python_path=python_path)


def test_complete_installation(tmp_path, prefix):
    machine = ros_machine(tmp_path, prefix)
    checks = (check_distro, check_stack_packages, check_gazebo_packages, check_workspace, check_rmw)
    assert {check(machine).status for check in checks} == {OK}
    assert check_rmw(machine).text == "rmw_fastrtps_cpp (the default)"


@pytest.mark.parametrize(("stack", "status"), [("auto", WARNING), ("ros2", ERROR)])
def test_severity_of_missing_packages(tmp_path, prefix, stack, status):
    for name in ("moveit_ros_move_group", "ros_gz_sim", "ldos_bringup"):
        (prefix / "share/ament_index/resource_index/packages" / name).unlink()
    machine = ros_machine(tmp_path, prefix, stack=stack)
    assert check_stack_packages(machine).status is status
    assert check_stack_packages(machine).remedy == "sudo apt-get install ros-jazzy-moveit-ros-move-group"
    assert check_workspace(machine).status is status
    assert "ros_ws" in check_workspace(machine).remedy


def test_the_planner_is_optional(tmp_path, prefix):
    (prefix / "share/ament_index/resource_index/packages/ldos_planner").unlink()
    finding = check_workspace(ros_machine(tmp_path, prefix, stack="ros2"))
    assert (finding.status, finding.remedy) == (WARNING, "ldos ros-packages ldos_planner")
    assert "without ldos_planner: equal versions plan unequal paths" in finding.text


@pytest.mark.parametrize(
    ("ros2", "status"),
    [
        ({}, WARNING),
        ({"sim": Simulation.GZ}, ERROR),
        ({"sim": Simulation.MOCK}, OK),
        ({"launch_file": "mine/a.py"}, OK),
    ],
)
def test_severity_of_missing_gazebo(tmp_path, prefix, ros2, status):
    (prefix / "share/ament_index/resource_index/packages/ros_gz_sim").unlink()
    assert check_gazebo_packages(ros_machine(tmp_path, prefix, stack="ros2", ros2=ros2)).status is status


def test_other_robot_does_not_need_the_pandas_packages(tmp_path):
    prefix = add_packages(tmp_path / "ros", needed_packages(StackSpec()))
    machine = ros_machine(tmp_path, prefix, stack="ros2", ros2={"launch_file": "mine/arm.launch.py"})
    assert check_stack_packages(machine).status is OK
    assert check_workspace(machine).status is OK


def test_middleware_of_the_settings_has_precedence(tmp_path, prefix):
    finding = check_rmw(ros_machine(tmp_path, prefix, ros2={"rmw": "rmw_cyclonedds_cpp"}))
    assert "rmw_cyclonedds_cpp is not installed" in finding.text


def test_other_distro_is_reported(tmp_path, prefix):
    machine = ros_machine(tmp_path, prefix)
    other = dataclasses.replace(machine, environment={**machine.environment, "ROS_DISTRO": "humble"})
    assert check_distro(other).status is WARNING


def test_untested_distro_is_reported(tmp_path, prefix):
    machine = ros_machine(tmp_path, prefix)
    newer = dataclasses.replace(machine, environment={**machine.environment, "ROS_DISTRO": "lyrical"})
    assert check_distro(newer).text == "lyrical, sourced: no arm was tested there yet"


@pytest.mark.parametrize(("stack", "status"), [("auto", OK), ("embedded", OK), ("ros2", ERROR)])
def test_no_ros(tmp_path, stack, status):
    assert check_distro(build_machine(tmp_path, stack=stack)).status is status


@pytest.mark.parametrize(("stack", "status"), [("auto", WARNING), ("ros2", ERROR)])
def test_installed_but_not_sourced(tmp_path, stack, status):
    (tmp_path / "opt/ros/jazzy").mkdir(parents=True)
    (tmp_path / "opt/ros/jazzy/local_setup.sh").touch()
    finding = check_distro(build_machine(tmp_path, stack=stack))
    assert finding.status is status
    assert finding.remedy == "source /opt/ros/jazzy/setup.bash"


def test_missing_middleware(tmp_path, prefix):
    finding = check_rmw(ros_machine(tmp_path, prefix, stack="ros2", RMW_IMPLEMENTATION="rmw_zenoh_cpp"))
    assert finding.status is ERROR
    assert finding.remedy == "sudo apt-get install ros-jazzy-rmw-zenoh-cpp"


def test_python_packages_of_another_version(tmp_path, prefix):
    folder = add_python(prefix, ("launch", "launch_ros", "rclpy"), version=OTHER_PYTHON)
    finding = check_python(ros_machine(tmp_path, prefix, python_path=[str(folder)]))
    assert f"built for Python {OTHER_PYTHON}" in finding.text


def test_python_packages_are_imported(tmp_path, prefix):
    """Existing files are not sufficient, because their imports may be missing."""
    names = ("launch", "launch_ros", "rclpy", "lark", "yaml", "packaging")
    folder = add_python(prefix, names)
    machine = ros_machine(tmp_path, prefix, python_path=[str(folder)], PYTHONPATH=str(folder))
    assert check_python(machine).status is OK
    (folder / "rclpy/__init__.py").write_text("import no_such_extension")
    assert "No module named 'no_such_extension'" in check_python(machine).text


@pytest.mark.parametrize(("exit_code", "status"), [(0, OK), (1, WARNING)])
def test_tracetools_reports_its_status(tmp_path, prefix, exit_code, status):
    add_program(prefix / "lib/tracetools", "status", f"exit {exit_code}")
    assert check_tracetools(ros_machine(tmp_path, prefix)).status is status


def test_unloadable_tracetools_is_reported(tmp_path, prefix):
    add_program(prefix / "lib/tracetools", "status", "echo no library >&2; exit 127")
    finding = check_tracetools(ros_machine(tmp_path, prefix))
    assert "cannot be run: no library" in finding.text


def test_no_tracetools(tmp_path, prefix):
    assert check_tracetools(ros_machine(tmp_path, prefix, stack="ros2")).status is ERROR


def names_of(machine):
    return {finding.name for finding in diagnose(machine)}


def test_ros_checks_run_only_with_ros(tmp_path, prefix):
    of_ros = {"ROS packages", "Gazebo packages", "ros_ws", "discovery", "middleware"}
    assert of_ros <= names_of(ros_machine(tmp_path, prefix))
    assert not of_ros & names_of(ros_machine(tmp_path, prefix, stack="embedded"))
    for stack in ("auto", "ros2"):
        found = names_of(build_machine(tmp_path, environment={"PATH": PATH}, stack=stack))
        assert not of_ros & found
        assert "ROS 2" in found
