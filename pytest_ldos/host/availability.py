"""Programs, modules and ROS 2 on this machine, with remedies where they are missing.

Reference: ament's resource index (``PREFIX/share/ament_index/resource_index/packages/NAME``); REP 2000 (names of a
distro's packages); Fast DDS 2.14: a segment or port in ``/dev/shm`` is in use while a process holds a lock on its
file ``…_el`` (one owner) or ``…_sl`` (several). A killed process leaves these files, with released locks.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.ros2 import DEFAULT, DISTROS


@dataclass(frozen=True)
class Availability:
    """Availability of a feature; unless `ok`, the reason why it is not there and a remedy."""

    ok: bool
    reason: str = ""
    remedy: str = ""

    def demand(self) -> None:
        """Raises `Unavailable` with reason and remedy unless `ok`."""
        if not self.ok:
            raise Unavailable(self.reason, remedy=self.remedy)


def find_programs(names: Sequence[str], *, package: str) -> Availability:
    """Looks for programs on `PATH`; `package` is their package in Debian and Ubuntu."""
    missing = [name for name in names if shutil.which(name) is None]
    if not missing:
        return Availability(True)
    return Availability(False, f"{', '.join(missing)} not found", f"sudo apt-get install {package}")


def program_version(name: str, command: str, option: str = "--version") -> str:
    """``perf 6.1.187``; the name alone if the command's output has no version."""
    found = re.search(r"\d+(\.\d+)+", run_program([command, option]).stdout)
    return f"{name} {found.group()}" if found else name


def run_program(
    command: Sequence[str],
    *,
    timeout_s: float | None = None,
    environment: Mapping[str, str] | None = None,
    given: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, with its output as text, in which undecodable bytes are replaced."""
    return subprocess.run(
        command,
        env=environment,
        input=given,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout_s,
        check=False,
    )


def find_modules(names: Sequence[str], *, extra: str) -> Availability:
    """Looks for importable Python modules without importing them."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if not missing:
        return Availability(True)
    reason = f"Python package {', '.join(missing)} not installed"
    return Availability(False, reason, f"pip install 'pytest-ldos[{extra}]'")


ROS_PYTHON: Final = ("launch", "launch_ros", "rclpy")
_THEIR_NEEDS: Final = {"lark": "python3-lark", "yaml": "python3-yaml", "packaging": "python3-packaging"}
"""Non-ROS modules that these packages import, with their packages in Debian and Ubuntu."""

_INSTALLED: Final = "opt/ros"
_PACKAGES: Final = "share/ament_index/resource_index/packages"
_NOT_RMW: Final = frozenset(
    {"rmw_implementation", "rmw_implementation_cmake", "rmw_dds_common", "rmw_fastrtps_shared_cpp"}
)
_OURS: Final = "ldos_"
_PYTHON_VERSION: Final = re.compile(r"python(\d+\.\d+)")
_THIS_PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True)
class RosDistro:
    """A ROS 2 distribution; its programs and packages can be used if its environment is sourced."""

    name: str
    is_sourced: bool


def find_distro(environment: Mapping[str, str] | None = None, *, root: Path = Path("/")) -> RosDistro | None:
    """The sourced distro, or the newest installed one; ROS's container images set ``ROS_DISTRO`` without sourcing."""
    sourced = _ours_unless(environment).get("ROS_DISTRO", "")
    if sourced and ros_prefixes(environment):
        return RosDistro(sourced, is_sourced=True)
    installed = installed_distros(root)
    return RosDistro(installed[-1], is_sourced=False) if installed else None


def installed_distros(root: Path = Path("/")) -> list[str]:
    """Names of the distros below ``/opt/ros``, in alphabetical order, hence by release."""
    return sorted(file.parent.name for file in (root / _INSTALLED).glob("*/local_setup.sh"))


def ros_prefixes(environment: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    return tuple(Path(each) for each in _ours_unless(environment).get("AMENT_PREFIX_PATH", "").split(":") if each)


def find_ros_package(name: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """The sourced prefix of a package; ``None`` if it is not found."""
    return next((prefix for prefix in ros_prefixes(environment) if (prefix / _PACKAGES / name).is_file()), None)


def ros_program(package: str, name: str) -> str:
    """Path of a program of a package; raises `Unavailable` if that is not sourced."""
    find_ros_packages([package]).demand()
    prefix = find_ros_package(package)
    assert prefix is not None
    return str(prefix / "lib" / package / name)


def find_ros_packages(names: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Availability:
    if not ros_prefixes(environment):
        return _not_sourced()
    missing = [name for name in names if find_ros_package(name, environment) is None]
    if not missing:
        return Availability(True)
    reason = f"ROS package{'s' * (len(missing) > 1)} {', '.join(missing)} not found"
    return Availability(False, reason, remedy_for_packages(missing, environment=environment))


def remedy_for_packages(missing: Sequence[str], *, environment: Mapping[str, str] | None = None) -> str:
    """Remedy that installs packages: apt for the distro's, the workspace for this project's."""
    distro = find_distro(environment)
    name = distro.name if distro else DEFAULT.name
    theirs = [f"ros-{name}-{each.replace('_', '-')}" for each in missing if not each.startswith(_OURS)]
    steps = [f"sudo apt-get install {' '.join(theirs)}"] if theirs else []
    if len(theirs) < len(missing):
        steps.append('build and source ros_ws: . "$(ldos ros-packages)" (make ros2-baseline does, too)')
    return "; ".join(steps)


def ros_python_available(
    environment: Mapping[str, str] | None = None, *, path: Sequence[str] | None = None
) -> Availability:
    """Looks for ROS's Python packages without importing them, in `path` or else in this interpreter's."""
    if not ros_prefixes(environment):
        return _not_sourced()
    found = {name: _find_module(name, path) for name in (*ROS_PYTHON, *_THEIR_NEEDS)}
    for name in ROS_PYTHON:
        version = _built_for(name, found[name], environment)
        if version and version != _THIS_PYTHON:
            reason = f"Python package {name} is built for Python {version}, this is {_THIS_PYTHON}"
            remedy = f"make the virtual environment with python{version} (make ros2-baseline does)"
            return Availability(False, reason, remedy)
    absent = [name for name in ROS_PYTHON if found[name] is None]
    if absent:
        reason = f"Python package {', '.join(absent)} not found"
        return Availability(False, reason, remedy_for_packages(absent, environment=environment))
    needs = [name for name in _THEIR_NEEDS if found[name] is None]
    if needs:
        debian = " ".join(_THEIR_NEEDS[name] for name in needs)
        reason = f"Python package {', '.join(needs)}, which launch needs, not found"
        remedy = f"make the virtual environment with --system-site-packages (and sudo apt-get install {debian})"
        return Availability(False, reason, remedy)
    return Availability(True)


def chosen_rmw(environment: Mapping[str, str] | None = None) -> str:
    named = _ours_unless(environment)
    return named.get("RMW_IMPLEMENTATION", "") or DISTROS.get(named.get("ROS_DISTRO", ""), DEFAULT).rmw


def installed_rmws(environment: Mapping[str, str] | None = None) -> list[str]:
    names = {file.name for prefix in ros_prefixes(environment) for file in (prefix / _PACKAGES).glob("rmw_*")}
    return sorted(name for name in names - _NOT_RMW if name.endswith("_cpp"))


def rmw_installed(name: str, *, environment: Mapping[str, str] | None = None) -> Availability:
    if not ros_prefixes(environment):
        return _not_sourced()
    there = installed_rmws(environment)
    if name in there:
        return Availability(True)
    reason = f"middleware {name} is not installed (there is {', '.join(there) or 'none'})"
    return Availability(False, reason, remedy_for_packages([name], environment=environment))


def _not_sourced() -> Availability:
    if installed := installed_distros():
        remedy = f"source /{_INSTALLED}/{installed[-1]}/setup.bash"
        return Availability(False, "no ROS 2 environment is sourced", remedy)
    remedy = f"source the setup of your own build, or make ros2-baseline (Ubuntu {DEFAULT.ubuntu})"
    return Availability(False, f"ROS 2 is neither sourced nor installed in /{_INSTALLED}", remedy)


def _find_module(name: str, path: Sequence[str] | None) -> Path | None:
    """A module's file; folders without ``__init__.py`` are ignored, because many projects have one named ``launch``."""
    spec = importlib.util.find_spec(name) if path is None else PathFinder.find_spec(name, list(path))
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def _built_for(name: str, found: Path | None, environment: Mapping[str, str] | None) -> str:
    """Python version that a ROS package was installed for; empty if its path does not contain it."""
    if found is not None:
        return _version_in(found)
    folders = (f"lib/python*/site-packages/{name}", f"local/lib/python*/dist-packages/{name}")
    prefixes = ros_prefixes(environment)
    there = {_version_in(each) for prefix in prefixes for folder in folders for each in prefix.glob(folder)}
    return "" if _THIS_PYTHON in there else max(there, default="")


def _version_in(place: Path) -> str:
    return next(iter(reversed(_PYTHON_VERSION.findall(str(place)))), "")


def _ours_unless(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environment is None else environment


_LOCK: Final = re.compile(r"(fast(?:rtps|dds)_(?:port\d{1,5}|[0-9a-z]{16}))_[es]l")


def find_stale(folder: Path) -> Sequence[Path]:
    """Files of segments and ports in shared memory without a held lock; inaccessible locks count as held."""
    found = (_LOCK.fullmatch(path.name) for path in sorted(folder.glob("fast*_[es]l")))
    names = [(match.group(), match.group(1)) for match in found if match]
    unused = {name for _, name in names} - {name for lock, name in names if _is_held(folder / lock)}
    files = (folder / each for name in unused for each in (name, f"{name}_el", f"{name}_sl", f"sem.{name}_mutex"))
    return sorted(file for file in files if file.is_file())


def _is_held(lock: Path) -> bool:
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
