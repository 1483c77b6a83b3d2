"""A ROS 2 installation as files: prefixes with an ament index, and Python packages."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHER_PYTHON = "3.8"


def add_packages(prefix: Path, names: Iterable[str]) -> Path:
    """Marks packages as installed in a prefix, as ament does; returns the prefix."""
    index = prefix / "share/ament_index/resource_index/packages"
    index.mkdir(parents=True, exist_ok=True)
    for name in names:
        (index / name).touch()
    return prefix


def add_python(prefix: Path, names: Iterable[str], *, version: str = THIS_PYTHON) -> Path:
    """Python packages in a prefix; returns the folder that belongs on the module path."""
    folder = prefix / f"lib/python{version}/site-packages"
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "__init__.py").touch()
    return folder


def sourced(*prefixes: Path, distro: str = "jazzy", **variables: str) -> dict[str, str]:
    """The environment of a shell that has sourced them."""
    return {"ROS_DISTRO": distro, "AMENT_PREFIX_PATH": ":".join(map(str, prefixes)), **variables}


def sourced_wheels(prefix: Path) -> dict[str, str]:
    """The same for the ROS 2 that ``.ci/rcl`` installs in a prefix."""
    (packages,) = prefix.glob("lib/python3.*/site-packages")
    libraries = ":".join(map(str, (prefix / "lib", *packages.glob("*.libs"))))
    return sourced(
        prefix,
        PYTHONPATH=str(packages),
        LD_LIBRARY_PATH=libraries,
        RMW_IMPLEMENTATION="rmw_fastrtps_cpp",
        FASTDDS_BUILTIN_TRANSPORTS="UDPv4",  # a killed process would leave shared memory
        ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST",
        ROS_VERSION="2",
    )
