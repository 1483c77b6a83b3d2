"""A version of the ROS 2 stack as installed: an install prefix, and the environment from sourcing it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.host.ros import ros_prefixes
from pytest_ldos.robot.stack.installation import OURS, Installation

SETUP: Final = "setup.bash"
_SOURCE: Final = 'source "$1" >&2 && exec env -0'
_PREFIXES: Final = "COLCON_PREFIX_PATH"
_TIMEOUT_S: Final = 60
_OF_THE_SHELL: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})


def find_prefix(text: str, *, folder: Path) -> Version:
    """The version installed in a prefix.

    Args:
        text: path of the prefix.
        folder: folder that relative paths start from.

    Raises:
        ConfigurationError: it is not an install prefix, or cannot be sourced.
    """
    prefix = (folder / Path(text).expanduser()).resolve()
    if not (prefix / SETUP).is_file():
        raise ConfigurationError(
            f"--ldos-base {text}: for the ros2 stack it must be an install prefix, and {prefix / SETUP} is no file",
            remedy="build the other version in a workspace of its own (colcon build) and name its install folder",
        )
    environment = source(prefix)
    if not any(each.is_relative_to(prefix) for each in ros_prefixes(environment)):
        raise ConfigurationError(
            f"--ldos-base {text}: sourcing {prefix / SETUP} gives no ROS package of this prefix",
            remedy="build the workspace (colcon build), or name the folder that it was installed to",
        )
    is_ours = ros_prefixes(environment) == ros_prefixes()
    installation = OURS if is_ours else Installation(environment=environment)
    return Version(role=Role.BASE, name=f"base {text}", commit="", installation=installation)


def source(prefix: Path) -> Mapping[str, str]:
    """The current environment, with the sourced prefixes replaced by this prefix and those it was built on.

    Raises:
        ConfigurationError: the script failed.
    """
    colcon = (Path(each) for each in os.environ.get(_PREFIXES, "").split(os.pathsep) if each)
    return source_over(environment_without([*ros_prefixes(), *colcon]), prefix / SETUP)


def source_over(environment: Mapping[str, str], script: Path) -> Mapping[str, str]:
    """An environment after sourcing a script, as variables that replace those of the current one.

    Raises:
        ConfigurationError: the script failed.
    """
    ours = {name: value for name, value in environment.items() if name not in _OF_THE_SHELL}
    command = ["bash", "--noprofile", "--norc", "-c", _SOURCE, "bash", str(script)]
    try:
        done = subprocess.run(command, env=ours, capture_output=True, check=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        said: bytes = getattr(error, "stderr", None) or b""
        details = said.decode(errors="replace")
        raise ConfigurationError(f"{script} cannot be sourced: {error}", details=details) from None
    pairs = (entry.partition("=") for entry in os.fsdecode(done.stdout).split("\0") if entry)
    sourced = {name: value for name, _, value in pairs if name not in _OF_THE_SHELL}
    # Variables that only the sourced prefixes had set must not come back from the current environment.
    return {**dict.fromkeys(set(os.environ) - set(ours) - _OF_THE_SHELL, ""), **sourced}


def environment_without(prefixes: Iterable[Path]) -> dict[str, str]:
    """The current environment without the entries that these prefixes added to it."""
    gone = set(prefixes)
    left = {name: _without(value, gone) for name, value in os.environ.items() if name not in _OF_THE_SHELL}
    return {name: value for name, value in left.items() if value or not os.environ[name]}


def installed_packages(prefix: Path) -> set[str]:
    """Names of the packages that colcon installed in a prefix, of either layout."""
    return {file.name for at in ("", "*/") for file in prefix.glob(f"{at}share/colcon-core/packages/*")}


def _without(value: str, prefixes: Iterable[Path]) -> str:
    places = value.split(os.pathsep)
    kept = [place for place in places if not any(Path(place).is_relative_to(prefix) for prefix in prefixes)]
    return value if len(kept) == len(places) else os.pathsep.join(kept)
