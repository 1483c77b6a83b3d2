"""Workspaces of plain CMake packages that the real colcon builds, without any ROS: and where colcon is found."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

MANIFEST = """<package format="3">
  <name>{name}</name><version>1.0.0</version><description>A part.</description>
  <maintainer email="nobody@example.org">nobody</maintainer><license>MIT</license>
  {depends}
  <export><build_type>cmake</build_type></export>
</package>
"""

CMAKE = """cmake_minimum_required(VERSION 3.16)
project({name} NONE)
install(FILES package.xml value DESTINATION share/{name})
file(WRITE ${{CMAKE_BINARY_DIR}}/marker "")
install(FILES ${{CMAKE_BINARY_DIR}}/marker DESTINATION share/ament_index/resource_index/packages RENAME {name})
file(WRITE ${{CMAKE_BINARY_DIR}}/ament_prefix_path.dsv "prepend-non-duplicate;AMENT_PREFIX_PATH;\\n")
install(FILES ${{CMAKE_BINARY_DIR}}/ament_prefix_path.dsv DESTINATION share/{name}/hook)
{more}
"""
"""Installs what ament would: a mark in its index, and a hook that names the prefix."""

MAIN = "int main(void) { return 0; }\n"
COMPILED = """enable_language(C)
add_executable(${PROJECT_NAME}_tool main.c)
install(TARGETS ${PROJECT_NAME}_tool DESTINATION lib/${PROJECT_NAME})
"""
"""A program; a compiler takes most of the time of such a build, so that few packages have one."""

LAUNCH = "install(DIRECTORY launch DESTINATION share/${PROJECT_NAME})\n"
HELD = """file(TOUCH {begun})
while(NOT EXISTS "{gate}")
  execute_process(COMMAND sleep 0.05)
endwhile()
"""
"""A build that says when it has begun, and goes on when a file is there."""

TOO_LARGE = """execute_process(COMMAND dd if=/dev/zero of=${CMAKE_BINARY_DIR}/large bs=1M count=64 RESULT_VARIABLE failed)
foreach(number RANGE 200)
  message(STATUS "${PROJECT_NAME} goes on although ${number}")
endforeach()
if(failed)
  message(FATAL_ERROR "the disk is full")
endif()
"""
"""Fills the disk, and then has colcon log more than the rest of its log's last page has room for."""


def find_colcon() -> str:
    """The folder of colcon: on the path, or in the separate environment of the setup; empty if none."""
    separate = Path(sys.executable).parents[1] / "colcon/bin"
    found = shutil.which("colcon", path=os.pathsep.join([os.environ.get("PATH", ""), str(separate)]))
    return str(Path(found).parent) if found else ""


def add_package(workspace: Path, name: str, *, value: int = 0, depends: str = "", more: str = "") -> Path:
    """A package that installs a value; returns its folder."""
    folder = workspace / "src" / name
    folder.mkdir(parents=True, exist_ok=True)
    needs = "".join(f"<depend>{each}</depend>" for each in depends.split())
    (folder / "package.xml").write_text(MANIFEST.format(name=name, depends=needs))
    (folder / "CMakeLists.txt").write_text(CMAKE.format(name=name, more=more))
    (folder / "colcon.pkg").write_text(f'{{"hooks": ["share/{name}/hook/ament_prefix_path.dsv"]}}')
    (folder / "value").write_text(f"{value}")
    return folder


def add_launch_file(workspace: Path, name: str, file: str) -> None:
    """A package with a launch file."""
    folder = add_package(workspace, name, more=LAUNCH) / "launch"
    folder.mkdir(exist_ok=True)
    (folder / file).write_text("def generate_launch_description(): ...\n")
