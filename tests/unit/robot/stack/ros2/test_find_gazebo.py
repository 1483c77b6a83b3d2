"""CMake finds Gazebo for the step probe, whatever its packages are called; here they are made up."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[5] / "ros_ws/src/ldos_gz_probe/cmake/find_gazebo.cmake"
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(probe LANGUAGES NONE)
include({script})
message(STATUS "linked with: ${{gazebo_libraries}}.")
"""
OTHER_NAME = """
find_package({of} REQUIRED)
add_library({name}::{target} ALIAS {of}::{of_target})
"""
MODULE = "add_library({name}::{target} INTERFACE IMPORTED)\n"

pytestmark = pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("make")), reason="no cmake or no make")


def add(prefix: Path, name: str, target: str, text: str = MODULE, **more: str) -> None:
    folder = prefix / "lib/cmake" / name
    folder.mkdir(parents=True)
    (folder / f"{name}-config.cmake").write_text(text.format(name=name, target=target, **more), "utf-8")


def found(tmp_path: Path) -> str:
    project = tmp_path / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(PROJECT.format(script=SCRIPT), "utf-8")
    command = ["cmake", "-S", str(project), "-B", str(tmp_path / "build"), f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}"]
    command += ["-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", "-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF"]
    command += [f"-DCMAKE_MAKE_PROGRAM={shutil.which('make')}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("linked with: ")[2].partition(".")[0]


def test_harmonics_own_packages(tmp_path):
    prefix = tmp_path / "prefix"
    add(prefix, "gz-plugin2", "register")
    add(prefix, "gz-sim8", "gz-sim8")
    assert found(tmp_path) == "gz-plugin2::register;gz-sim8::gz-sim8"


def test_ros_vendor_packages_without_versions_in_their_names(tmp_path):
    prefix = tmp_path / "prefix"
    add(prefix, "gz-plugin2", "register")
    add(prefix, "gz-sim8", "gz-sim8")
    add(prefix, "gz-plugin", "register", OTHER_NAME, of="gz-plugin2", of_target="register")
    add(prefix, "gz-sim", "gz-sim", OTHER_NAME, of="gz-sim8", of_target="gz-sim8")
    assert found(tmp_path) == "gz-plugin::register;gz-sim::gz-sim"


def test_jettys_own_packages(tmp_path):
    prefix = tmp_path / "prefix"
    add(prefix, "gz-plugin", "register")
    add(prefix, "gz-sim", "gz-sim")
    assert found(tmp_path) == "gz-plugin::register;gz-sim::gz-sim"


def test_incomplete_gazebo_is_not_found(tmp_path):
    add(tmp_path / "prefix", "gz-plugin", "register")
    assert found(tmp_path) == ""


def test_no_gazebo(tmp_path):
    assert found(tmp_path) == ""
