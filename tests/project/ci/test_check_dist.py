"""``.ci/check_dist.py``: what distributions must hold, and nothing else."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / ".ci" / "check_dist.py"

DATA = [
    "pytest_ldos/plugin/hooks.py",
    "pytest_ldos/py.typed",
    "pytest_ldos/show/report/schema.json",
    "pytest_ldos/robot/dds/definitions/control_msgs.txt",
    "pytest_ldos/robot/dds/definitions/moveit_msgs.txt",
    "pytest_ldos/robot/dds/definitions/services.txt",
    "pytest_ldos/robot/stack/embedded/panda.xml",
    "pytest_ldos/robot/topology/topologies/pick_cell.json",
]
FIRST_PROJECT = [
    f"examples/first_project/{name}"
    for name in (".github/workflows/request.yml", ".gitignore", "pyproject.toml", "test_arm.py")
]
TAG = "cpython-311-x86_64-linux-gnu"
WHEEL = [
    *DATA,
    *(f"pytest_ldos/{name}" for name in FIRST_PROJECT),
    "pytest_ldos/ros_ws/src/ldos_goal_client/CMakeLists.txt",
    "pytest_ldos/ros_ws/src/ldos_goal_client/package.xml",
    f"pytest_ldos/trace/ctf/_decoder.{TAG}.so",
    f"pytest_ldos/trace/execution/_states.{TAG}.so",
    f"pytest_ldos/robot/dds/_lttng.{TAG}.so",
    "pytest_ldos/record/libldos_callers.so.1",
    "pytest_ldos/robot/dds/libldos_loopback.so",
    f"pytest_ldos/instruments/latency/_pingpong.{TAG}.so",
    "pytest_ldos-1.0.dist-info/METADATA",
    "pytest_ldos-1.0.dist-info/RECORD",
    "pytest_ldos-1.0.dist-info/WHEEL",
    "pytest_ldos-1.0.dist-info/entry_points.txt",
    "pytest_ldos-1.0.dist-info/licenses/LICENSE",
]
SDIST = [
    *DATA,
    *FIRST_PROJECT,
    "ros_ws/src/ldos_goal_client/CMakeLists.txt",
    "ros_ws/src/ldos_goal_client/package.xml",
    "ros_ws/src/ldos_planner/src/ldos_planner_parameters.yaml",
    "pytest_ldos/trace/ctf/native/CMakeLists.txt",
    "pytest_ldos/trace/ctf/native/census.cpp",
    "CMakeLists.txt",
    "pyproject.toml",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "PKG-INFO",
]


def check(folder: Path, names: list[str], *, is_wheel: bool) -> tuple[int, str]:
    file = folder / ("x.whl" if is_wheel else "x.tar.gz")
    if is_wheel:
        with zipfile.ZipFile(file, "w") as wheel:
            for name in names:
                wheel.writestr(name, "")
    else:
        with tarfile.open(file, "w:gz") as sdist:
            for name in names:
                sdist.addfile(tarfile.TarInfo(f"pytest_ldos-1.0/{name}"), io.BytesIO())
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(("names", "is_wheel"), [(WHEEL, True), (SDIST, False)])
def test_complete_distributions_are_accepted(tmp_path, names, is_wheel):
    assert check(tmp_path, names, is_wheel=is_wheel) == (0, "")


@pytest.mark.parametrize(
    "missing", [name for name in WHEEL if "dist-info" not in name or "entry" in name or "LICENSE" in name]
)
def test_incomplete_wheel_is_refused(tmp_path, missing):
    status, printed = check(tmp_path, [name for name in WHEEL if name != missing], is_wheel=True)
    assert status == 1
    assert "it lacks" in printed


@pytest.mark.parametrize(
    "stray",
    [
        "tests/unit/test_x.py",
        ".ldos/runs/1/trials.json",
        "pytest_ldos/trace/ctf/native/census.cpp",
        "pytest_ldos.libs/liblttng-ust-abc.so.1",
        "ARCHITECTURE.md",
        "pytest_ldos/own.so",
    ],
)
def test_unexpected_file_in_a_wheel(tmp_path, stray):
    """A second copy of the tracer's library, above all."""
    status, printed = check(tmp_path, [*WHEEL, stray], is_wheel=True)
    assert (status, printed) == (1, f"check_dist: x.whl: {stray} does not belong there\n")


@pytest.mark.parametrize(
    "stray",
    [
        "tests/golden/x.tar.xz",
        "lab/setup",
        ".ldos/x.json",
        "profile.py",
        "dist/x.whl",
        ".ci/wheels",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "benchmarks/decoder.py",
        "docs/decisions/README.md",
        "examples/own_metric/conftest.py",
    ],
)
def test_unexpected_file_in_a_source_distribution(tmp_path, stray):
    status, printed = check(tmp_path, [*SDIST, stray], is_wheel=False)
    assert (status, printed) == (1, f"check_dist: x.tar.gz: {stray} does not belong there\n")


def listed(*options: str) -> set[str]:
    """Files that git has of the project."""
    found = subprocess.run(
        ["git", "ls-files", "-z", *options], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return {name for name in found.stdout.split("\0") if name}


def test_every_file_that_is_not_excluded_is_known():
    """New files must be added to the check or excluded, or the release's build fails."""
    spec = importlib.util.spec_from_file_location("check_dist", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    excluded = project["tool"]["scikit-build"]["sdist"]["exclude"]
    names = listed() - listed("--cached", "--ignored", *(f"--exclude={pattern}" for pattern in excluded))
    assert len(names) > 500
    assert list(script.find_faults(["PKG-INFO", *sorted(names)], is_wheel=False)) == []
