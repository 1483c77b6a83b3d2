"""Requirements of ``ros_ws``'s packages: their files with the real CMake, and stand-ins for ROS 2."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PLANNER = ROOT / "ros_ws/src/ldos_planner"

needs_cmake = pytest.mark.skipif(
    not all(map(shutil.which, ("cmake", "make", "c++"))), reason="CMake, make and a compiler are not installed"
)

TARGETS = {
    "ament_cmake": "",
    "ldos_tracepoints": "ldos_tracepoints::ldos_tracepoints",
    "moveit_core": "moveit_core::moveit_constraint_samplers moveit_core::moveit_planning_interface "
    "moveit_core::moveit_planning_scene",
    "moveit_msgs": "",
    "moveit_planners_ompl": "moveit_planners_ompl::moveit_ompl_interface",
    "moveit_ros_planning": "",
    "pluginlib": "pluginlib::pluginlib",
    "rclcpp": "rclcpp::rclcpp",
    "tf2_eigen": "",
    "tf2_ros": "",
    "generate_parameter_library": "",
}
"""Packages that the planner finds, with their targets that it links."""

FUNCTIONS = """
function(ament_package)
endfunction()
function(generate_parameter_library name)
  add_library(${name} INTERFACE)
endfunction()
function(pluginlib_export_plugin_description_file)
endfunction()
"""

OLD = {
    "ompl": 'set(OMPL_LIBRARIES "{prefix}/lib/libompl.so;{prefix}/lib/libboost_serialization.so")\n'
    'set(OMPL_INCLUDE_DIRS "{prefix}/include/ompl-1.5;/usr/include")\n',
    "random_numbers": 'set(random_numbers_LIBRARIES "{prefix}/lib/librandom_numbers.so")\n'
    'set(random_numbers_INCLUDE_DIRS "{prefix}/include")\n',
}
"""Variables as OMPL 1.5.2 of Debian 12 and random_numbers 2.0.1 set them (``omplConfig.cmake``, ``ament_export_…``)."""

NEW = {
    name: f"add_library({name}::{name} SHARED IMPORTED)\n"
    f"set_target_properties({name}::{name} PROPERTIES IMPORTED_LOCATION {{prefix}}/lib/lib{name}.so\n"
    f"  INTERFACE_INCLUDE_DIRECTORIES {{prefix}}/include/{name})\n"
    for name in OLD
}
"""Targets alone, as OMPL 1.7 and random_numbers 2.0.5 export them."""


def add_config(prefix: Path, name: str, text: str) -> None:
    """Makes a package that CMake finds."""
    folder = prefix / "lib/cmake" / name
    folder.mkdir(parents=True)
    (folder / f"{name}Config.cmake").write_text(text.format(prefix=prefix))


@pytest.fixture
def prefix(tmp_path) -> Path:
    """A prefix with what the planner needs, but OMPL and random_numbers."""
    made = tmp_path / "prefix"
    for name, targets in TARGETS.items():
        functions = FUNCTIONS.replace("{", "{{").replace("}", "}}") if name == "ament_cmake" else ""
        add_config(
            made, name, functions + "".join(f"add_library({each} INTERFACE IMPORTED)\n" for each in targets.split())
        )
    header = made / "include/moveit_planners/moveit/ompl_interface/ompl_interface.hpp"
    for folder in (header.parent, made / "include/ompl-1.5", made / "include/ompl", made / "include/random_numbers"):
        folder.mkdir(parents=True, exist_ok=True)
    header.touch()
    return made


def configure(prefix: Path, build: Path) -> subprocess.CompletedProcess[str]:
    command = ["cmake", "-S", str(PLANNER), "-B", str(build), "-G", "Unix Makefiles", "-DBUILD_TESTING=OFF"]
    settings = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"]
    return subprocess.run([*command, *settings], capture_output=True, text=True, check=False)


@needs_cmake
@pytest.mark.parametrize(("ompl", "random_numbers"), [(OLD, OLD), (OLD, NEW), (NEW, OLD), (NEW, NEW)])
def test_the_planner_takes_releases_with_and_without_targets(prefix, tmp_path, ompl, random_numbers):
    add_config(prefix, "ompl", ompl["ompl"])
    add_config(prefix, "random_numbers", random_numbers["random_numbers"])
    done = configure(prefix, tmp_path / "build")
    assert done.returncode == 0, done.stderr
    made = tmp_path / "build/CMakeFiles/ldos_planner.dir"
    linked = re.findall(r"(?:-l|/lib)(\w+)(?=\.so|\s)", (made / "link.txt").read_text())
    assert {"ompl", "random_numbers"} <= set(linked)
    assert ("boost_serialization" in linked) == (ompl is OLD)
    searched = re.findall(rf"{re.escape(str(prefix))}/include/?(\S*)", (made / "flags.make").read_text())
    assert ("ompl-1.5" if ompl is OLD else "ompl") in searched
    assert ("" if random_numbers is OLD else "random_numbers") in searched


class Anything(ModuleType):
    """A module of ROS 2 that is not here: its names are functions that return nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **settings: Path()


@pytest.fixture
def launch_file(monkeypatch):
    """The Panda's launch file as a module; the packages that are installed are its `packages`."""
    for name in ("actions", "conditions", "event_handlers", "substitutions"):
        monkeypatch.setitem(sys.modules, f"launch.{name}", Anything(name))
    for name in ("ament_index_python", "ament_index_python.packages", "launch", "launch_ros", "launch_ros.actions"):
        monkeypatch.setitem(sys.modules, name, Anything(name))
    for name in ("launch_ros.parameter_descriptions", "xacro"):
        monkeypatch.setitem(sys.modules, name, Anything(name))
    spec = importlib.util.spec_from_file_location("panda", ROOT / "ros_ws/src/ldos_bringup/launch/stack.launch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    file = ROOT / "ros_ws/src/ldos_panda_config/config/ompl_planning.yaml"
    module.LaunchConfiguration = lambda name: SimpleNamespace(perform=lambda context: str(file))
    module.packages = {}
    module.get_packages_with_prefixes = lambda: module.packages
    return module


def test_without_our_planner_the_panda_plans_by_moveits_own(launch_file):
    file, changed = launch_file.pipelines(None)
    ours = yaml.safe_load(Path(file).read_text("utf-8"))["/**"]["ros__parameters"]["ompl"]
    assert ours["planning_plugins"] == ["ldos_planner/OMPLPlanner"]
    assert changed == {
        "ompl": {
            "planning_plugins": ["ompl_interface/OMPLPlanner"],
            "response_adapters": [each for each in ours["response_adapters"] if "ldos_" not in each],
        }
    }
    assert len(changed["ompl"]["response_adapters"]) == len(ours["response_adapters"]) - 1
    launch_file.packages = {"ldos_planner": "/opt"}
    assert launch_file.pipelines(None) == [file]
