"""The environment that a workspace is built over, and what identifies it."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.units import listed
from pytest_ldos.campaign.versions.kept import digest_of
from pytest_ldos.campaign.versions.prefixes import environment_without, installed_packages
from pytest_ldos.host.checkout import OF_ANOTHER_CHECKOUT
from pytest_ldos.host.file_digests import FileDigests
from pytest_ldos.host.packaged import find_packaged

_PREFIXES: Final = ("AMENT_PREFIX_PATH", "COLCON_PREFIX_PATH", "CMAKE_PREFIX_PATH")
_NOT_PASSED_ON: Final = ("PYTHONHOME", "VIRTUAL_ENV", "COLCON_LOG_PATH", *OF_ANOTHER_CHECKOUT)
_BUILD_SETTINGS: Final = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "ROS_DISTRO")
_CMAKE_SETTINGS: Final = "CMAKE_"
_TOOLS: Final = ("cmake", "cc", "c++", "python3")
_CHOSEN_BY: Final = {"cc": "CC", "c++": "CXX"}
_TIMEOUT_S: Final = 60
_SHOWN: Final = 3
_LONGEST: Final = 40


@dataclass(frozen=True)
class Underlay:
    """An environment without the workspace that is to be built.

    Attributes:
        environment: all its variables.
        identity: prefixes, tools and settings that a build depends on.
    """

    environment: Mapping[str, str]
    identity: Mapping[str, Any]

    @property
    def distro(self) -> str:
        return self.environment.get("ROS_DISTRO", "")

    def below(self, python: Path) -> Underlay:
        """The same with a virtual environment of Python activated."""
        path = os.pathsep.join([str(python / "bin"), *filter(None, [self.environment.get("PATH")])])
        activated = {**self.environment, "VIRTUAL_ENV": str(python), "PATH": path}
        return Underlay(activated, {**self.identity, "python": str(python)})


def find_underlay(own: Iterable[Path], packages: Collection[str], *, store: Path) -> Underlay:
    """The environment of this process without the workspaces that are to be built.

    Args:
        own: folders whose prefixes are no underlay: of the project's workspaces, and of those that were built here.
        packages: of the project's workspaces; nor is a prefix elsewhere that colcon filled with some of these alone.
        store: folder of the digests of files that were read before.

    Raises:
        OSError: a file of a prefix cannot be read.
        NotWritten, ConfigurationError: see `writing`.
    """
    folders = [each.resolve() for each in own]
    found = _prefixes(os.environ)
    folders += [each.resolve() for each in found if (there := installed_packages(each)) and there <= set(packages)]
    built = [each for each in found if any(each.resolve().is_relative_to(place) for place in folders)]
    environment = environment_without(built)
    for name in _NOT_PASSED_ON:
        environment.pop(name, None)
    prefixes = _outermost(_prefixes(environment))
    identity = {
        "prefixes": [_identify(each, store) for each in prefixes],
        "tools": {name: _version(name, environment) for name in _TOOLS},
        "settings": {name: value for name, value in sorted(environment.items()) if _is_setting(name)},
    }
    return Underlay(environment, identity)


def changes_of(identity: Mapping[str, Any], earlier: Mapping[str, Any]) -> str:
    """Names the differences between two underlays, by package where packages differ."""
    before, now = _flat(earlier), _flat(identity)
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return listed([f"{each} {_short(before.get(each))} → {_short(now.get(each))}" for each in changed], most=_SHOWN)


def _short(value: str | None) -> str:
    return "absent" if value is None else value[:_LONGEST]


def _flat(identity: Mapping[str, Any]) -> dict[str, str]:
    values = {**identity.get("tools", {}), **identity.get("settings", {}), "python": identity.get("python", "")}
    for prefix in identity.get("prefixes", []):
        values |= prefix["packages"]
        values[f"files of {prefix['path']}"] = prefix["files"][:12]
    return values


def _prefixes(environment: Mapping[str, str]) -> list[Path]:
    """All folders that packages are searched in, without repetition."""
    found = (each for name in _PREFIXES for each in environment.get(name, "").split(os.pathsep) if each)
    return [Path(each) for each in dict.fromkeys(found)]


def _outermost(prefixes: list[Path]) -> list[Path]:
    """Prefixes that exist and lie in no other, as those of single packages lie in that of their workspace."""
    there = [each for each in prefixes if each.is_dir()]
    return [each for each in there if not any(each != other and each.is_relative_to(other) for other in there)]


def _identify(prefix: Path, store: Path) -> dict[str, Any]:
    """A prefix: versions of the packages that installed it, and a digest of the files that none has installed."""
    packaged = find_packaged(prefix)
    digests = FileDigests(store / f"digests-{digest_of({'path': str(prefix)})}.json")
    files = digests.of_folder(prefix, skip=lambda path, is_folder: not is_folder and path in packaged.files)
    digests.save()
    return {"path": str(prefix), "packages": dict(sorted(packaged.versions.items())), "files": files}


def _is_setting(name: str) -> bool:
    return name in _BUILD_SETTINGS or (name.startswith(_CMAKE_SETTINGS) and name not in _PREFIXES)


def _version(program: str, environment: Mapping[str, str]) -> str:
    """First line of what a program says of its version; empty if it cannot be run."""
    chosen = environment.get(_CHOSEN_BY.get(program, ""), program)
    try:
        command = [*shlex.split(chosen), "--version"]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return (done.stdout.decode(errors="replace").splitlines() or [""])[0]
