"""Manifests of the workspace's packages: what rosdistro, bloom and rosdep read of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = sorted((ROOT / "ros_ws/src").glob("*/package.xml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

KEY_OF = {
    "yaml-cpp": "yaml-cpp",
    "nlohmann_json": "nlohmann-json-dev",
    "LTTngUST": "liblttng-ust-dev",
    "Eigen3": "eigen",
    "OpenMP": "",
    "Threads": "",
    "PkgConfig": "",
}
"""rosdep's key of what CMake calls otherwise; empty for what every compiler has."""


def manifest(file: Path) -> ET.Element:
    return ET.fromstring(file.read_text("utf-8"))


def text_of(package: ET.Element, tag: str) -> str:
    (element,) = package.findall(tag)
    return (element.text or "").strip()


def depends_of(package: ET.Element) -> set[str]:
    return {(each.text or "").strip() for each in package if each.tag.endswith("depend")}


def found_by_cmake(file: Path) -> set[str]:
    """Packages that the build needs; those that it does without (QUIET) and those of tests are left out."""
    text = "\n".join(each.read_text("utf-8") for each in [file, *file.parent.glob("cmake/*.cmake")])
    needed, _, _ = text.partition("if(BUILD_TESTING)")
    return set(re.findall(r"find_package\((\S+)[^)]*REQUIRED", needed))


@pytest.mark.parametrize("file", PACKAGES, ids=lambda file: file.parent.name)
def test_manifest_has_the_fields_of_a_release(file):
    package = manifest(file)
    assert package.get("format") == "3"
    assert text_of(package, "name") == file.parent.name
    assert text_of(package, "version") == PROJECT["version"]
    assert text_of(package, "license") == PROJECT["license"]
    description = text_of(package, "description")
    assert description.endswith(".")
    assert "TODO" not in description
    assert re.fullmatch(r"\S+@\S+\.\S+", package.findall("maintainer")[0].get("email", ""))


@pytest.mark.parametrize("file", PACKAGES, ids=lambda file: file.parent.name)
def test_packages_used_by_the_build_are_dependencies(file):
    build = file.with_name("CMakeLists.txt")
    if not build.exists():
        pytest.skip("this package is built by setuptools")
    needed = {KEY_OF.get(name, name) for name in found_by_cmake(build)} - {""}
    assert needed <= depends_of(manifest(file)), file.parent.name


def test_the_package_of_the_command_has_one_version():
    text = (ROOT / "ros_ws/src/ldos_ros2cli/setup.py").read_text("utf-8")
    assert f"version='{PROJECT['version']}'" in text
