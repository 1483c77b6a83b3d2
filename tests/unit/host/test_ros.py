"""Detection of ROS 2 by environment and files."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.availability import (
    RosDistro,
    chosen_rmw,
    find_distro,
    find_ros_package,
    find_ros_packages,
    installed_distros,
    installed_rmws,
    rmw_installed,
    ros_python_available,
)
from tests.builders.ros import OTHER_PYTHON, THIS_PYTHON, add_packages, add_python, sourced

NEEDS = ("lark", "yaml", "packaging")
ROS = ("launch", "launch_ros", "rclpy")


@pytest.fixture
def prefix(tmp_path):
    return tmp_path / "opt/ros/jazzy"


def install(root, *names):
    for name in names:
        (root / "opt/ros" / name).mkdir(parents=True)
        (root / "opt/ros" / name / "local_setup.sh").touch()


def test_sourced_distro_has_precedence_over_installed_ones(tmp_path):
    install(tmp_path, "kilted", "jazzy")
    (tmp_path / "opt/ros/leftovers").mkdir()
    assert installed_distros(tmp_path) == ["jazzy", "kilted"]
    assert find_distro({}, root=tmp_path) == RosDistro("kilted", is_sourced=False)
    environment = sourced(tmp_path / "opt/ros/jazzy")
    assert find_distro(environment, root=tmp_path) == RosDistro("jazzy", is_sourced=True)


def test_ros_distro_alone_is_not_sourced(tmp_path):
    install(tmp_path, "jazzy")
    assert find_distro({"ROS_DISTRO": "jazzy"}, root=tmp_path) == RosDistro("jazzy", is_sourced=False)


def test_no_distro(tmp_path):
    assert find_distro({}, root=tmp_path) is None


def test_first_prefix_with_a_package_is_used(tmp_path):
    overlay, underlay = add_packages(tmp_path / "ws", ["rclcpp"]), add_packages(tmp_path / "ros", ["rclcpp", "rclpy"])
    environment = sourced(overlay, underlay)
    assert find_ros_package("rclcpp", environment) == overlay
    assert find_ros_package("rclpy", environment) == underlay
    assert find_ros_package("nav2", environment) is None


def test_missing_packages_have_install_commands(prefix):
    environment = sourced(add_packages(prefix, ["controller_manager"]))
    assert find_ros_packages(["controller_manager"], environment=environment).ok
    answer = find_ros_packages(["controller_manager", "moveit_ros_move_group", "ldos_bringup"], environment=environment)
    assert not answer.ok
    assert answer.reason == "ROS packages moveit_ros_move_group, ldos_bringup not found"
    assert answer.remedy.startswith("sudo apt-get install ros-jazzy-moveit-ros-move-group; build and source ros_ws")
    with pytest.raises(Unavailable, match="moveit_ros_move_group"):
        answer.demand()


def test_nothing_is_found_without_sourcing(prefix):
    add_packages(prefix, ["rclcpp"])
    for answer in (
        find_ros_packages(["rclcpp"], environment={}),
        ros_python_available({}),
        rmw_installed("rmw_cyclonedds_cpp", environment={}),
    ):
        assert not answer.ok
        assert answer.reason
        assert answer.remedy


def test_installed_middlewares(prefix):
    names = ["rmw_implementation", "rmw_dds_common", "rmw_fastrtps_shared_cpp", "rmw_fastrtps_cpp", "rmw", "rclcpp"]
    environment = sourced(add_packages(prefix, names))
    assert installed_rmws(environment) == ["rmw_fastrtps_cpp"]
    assert rmw_installed("rmw_fastrtps_cpp", environment=environment).ok
    answer = rmw_installed("rmw_cyclonedds_cpp", environment=environment)
    assert answer.reason == "middleware rmw_cyclonedds_cpp is not installed (there is rmw_fastrtps_cpp)"
    assert answer.remedy == "sudo apt-get install ros-jazzy-rmw-cyclonedds-cpp"


def test_the_chosen_middleware():
    assert chosen_rmw({}) == "rmw_fastrtps_cpp"
    assert chosen_rmw({"RMW_IMPLEMENTATION": ""}) == "rmw_fastrtps_cpp"
    assert chosen_rmw({"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}) == "rmw_cyclonedds_cpp"


def test_importable_python_packages(prefix):
    path = [str(add_python(prefix, (*ROS, *NEEDS)))]
    assert ros_python_available(sourced(prefix), path=path).ok


def test_packages_of_another_python_version_are_reported(prefix):
    """Both on the module path and only installed."""
    folder = add_python(prefix, (*ROS, *NEEDS), version=OTHER_PYTHON)
    for path in ([str(folder)], []):
        answer = ros_python_available(sourced(prefix), path=path)
        assert answer.reason == f"Python package launch is built for Python {OTHER_PYTHON}, this is {THIS_PYTHON}"
        assert f"python{OTHER_PYTHON}" in answer.remedy


def test_folder_named_launch_is_no_package(tmp_path, prefix):
    """Most ROS packages have one in their test folder."""
    (tmp_path / "project/launch").mkdir(parents=True)
    prefix.mkdir(parents=True)
    path = [str(tmp_path / "project"), str(add_python(prefix, ("launch_ros", "rclpy", *NEEDS)))]
    answer = ros_python_available(sourced(prefix), path=path)
    assert answer.reason == "Python package launch not found"


def test_a_virtual_environment_without_the_systems_packages(prefix):
    answer = ros_python_available(sourced(prefix), path=[str(add_python(prefix, (*ROS, "packaging")))])
    assert answer.reason == "Python package lark, yaml, which launch needs, not found"
    assert "--system-site-packages" in answer.remedy
    assert "python3-lark python3-yaml" in answer.remedy


def test_default_is_the_environment_of_this_process(prefix, monkeypatch):
    for name, value in sourced(add_packages(prefix, ["rclcpp"])).items():
        monkeypatch.setenv(name, value)
    assert find_ros_packages(["rclcpp"]).ok
    assert find_distro() == RosDistro("jazzy", is_sourced=True)
