"""Checks that distributions contain the required files and no others.

Usage: python3 .ci/check_dist.py FILE…: wheels and source distributions.
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_DATA: Final = r"\.(css|csv|js|json|sh|txt|xml)|py\.typed"
_WHEEL: Final = re.compile(
    rf"pytest_ldos/(.*({_DATA}|\.pyi?)|(trace/ctf/_decoder|trace/execution/_states|robot/dds/_lttng|instruments/latency/_pingpong)\.[\w-]+\.so"
    r"|robot/dds/libldos_loopback\.so|record/libldos_callers\.so\.1|ros_ws/src/ldos_.+|examples/first_project/.+)"
    r"|pytest_ldos-[^/]+\.dist-info/(METADATA|RECORD|WHEEL|entry_points\.txt|licenses/LICENSE"
    r"|sboms/auditwheel\.cdx\.json)"
)
_SDIST: Final = re.compile(
    rf"(pytest_ldos/.*({_DATA}|\.pyi?|/native/[^/]+)"
    r"|ros_ws/\.?[\w/.-]+|examples/first_project/.+"
    r"|PKG-INFO|pyproject\.toml|CMakeLists\.txt|LICENSE|README\.md|CHANGELOG\.md|CITATION\.cff|SECURITY\.md|\.gitignore)"
)
_NEEDED: Final = (
    r"pytest_ldos/plugin/hooks\.py",
    r"pytest_ldos/py\.typed",
    r"(pytest_ldos/)?ros_ws/src/ldos_goal_client/CMakeLists\.txt",
    r"(pytest_ldos/)?ros_ws/src/ldos_goal_client/package\.xml",
    r"(pytest_ldos/)?examples/first_project/\.github/workflows/request\.yml",
    r"(pytest_ldos/)?examples/first_project/\.gitignore",
    r"(pytest_ldos/)?examples/first_project/pyproject\.toml",
    r"(pytest_ldos/)?examples/first_project/test_arm\.py",
    r"pytest_ldos/show/report/schema\.json",
    r"pytest_ldos/robot/dds/definitions/control_msgs\.txt",
    r"pytest_ldos/robot/dds/definitions/moveit_msgs\.txt",
    r"pytest_ldos/robot/dds/definitions/services\.txt",
    r"pytest_ldos/robot/stack/embedded/panda\.xml",
    r"pytest_ldos/robot/topology/topologies/pick_cell\.json",
    r"(.*/licenses/)?LICENSE",
)
_NEEDED_IN_WHEEL: Final = (
    r"pytest_ldos/trace/ctf/_decoder\..*\.so",
    r"pytest_ldos/trace/execution/_states\..*\.so",
    r"pytest_ldos/robot/dds/_lttng\..*\.so",
    r"pytest_ldos/record/libldos_callers\.so\.1",
    r"pytest_ldos/robot/dds/libldos_loopback\.so",
    r"pytest_ldos/instruments/latency/_pingpong\..*\.so",
    r".*/entry_points\.txt",
)
_NEEDED_IN_SDIST: Final = (
    r"CMakeLists\.txt",
    r"pyproject\.toml",
    r"README\.md",
    r"CHANGELOG\.md",
    r"pytest_ldos/trace/ctf/native/CMakeLists\.txt",
)


def find_faults(names: Sequence[str], *, is_wheel: bool) -> Iterator[str]:
    """Missing and unexpected files.

    Args:
        names: of all files; in a source distribution without the folder that it has around all.
    """
    known = _WHEEL if is_wheel else _SDIST
    for pattern in (*_NEEDED, *(_NEEDED_IN_WHEEL if is_wheel else _NEEDED_IN_SDIST)):
        if not any(re.fullmatch(pattern, name) for name in names):
            yield f"it lacks {pattern}"
    for name in names:
        if not known.fullmatch(name):
            yield f"{name} does not belong there"


def names_in(file: Path) -> list[str]:
    """Returns the names of a distribution's files."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return [name for name in wheel.namelist() if not name.endswith("/")]
    with tarfile.open(file) as sdist:
        return [member.name.partition("/")[2] for member in sdist if not member.isdir()]


if __name__ == "__main__":
    status = 0
    for given in map(Path, sys.argv[1:]):
        for fault in find_faults(names_in(given), is_wheel=given.suffix == ".whl"):
            sys.stderr.write(f"check_dist: {given.name}: {fault}\n")
            status = 1
    sys.exit(status)
