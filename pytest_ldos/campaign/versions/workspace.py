"""ROS 2 workspaces of a project, their underlays, and install prefixes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, PreparationFailed
from pytest_ldos.base.text import listed
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.versions.version import Revision, Version, digest_of
from pytest_ldos.host.availability import ros_prefixes
from pytest_ldos.host.checkout import OF_ANOTHER_CHECKOUT, FileDigests, Skip, ask_git, find_packaged
from pytest_ldos.robot.stack.protocol import OURS, Installation

_MANIFEST: Final = "package.xml"
_NAME: Final = re.compile(r"<name>\s*([^<\s]+)\s*</name>")
_OF_COLCON: Final = frozenset({"build", "install", "log"})
_ELSEWHERE: Final = re.compile(r"(?m)^1[26]0000 ")
"""Git tree entries without content: links and submodules."""


@dataclass(frozen=True)
class Workspace:
    """Workspaces of a project; `scratch_parent` is the folder of the checkout that was created for them, if any."""

    project: Path
    folders: tuple[str, ...]
    scratch_parent: Path | None = None

    @property
    def places(self) -> list[Path]:
        return [self.project / each for each in self.folders]

    def packages(self) -> set[str]:
        return {name for file in self.manifests() if (name := name_in(file))}

    def metas(self) -> list[Path]:
        """Settings files of colcon for packages, of the project and each workspace."""
        found = (place / "colcon.meta" for place in dict.fromkeys([self.project, *self.places]))
        return [each for each in found if each.is_file()]

    def manifests(self) -> Iterator[Path]:
        for place in self.places:
            is_left_out = _made_in(place)
            for folder, folders, files in os.walk(place, followlinks=True):
                here = Path(folder)
                folders[:] = [
                    each for each in folders if not each.startswith(".") and not is_left_out(str(here / each), True)
                ]
                if _MANIFEST in files:
                    folders.clear()
                    yield here / _MANIFEST

    def require(self, name: str) -> None:
        """Raises `PreparationFailed` if a folder is missing; the message has the version and the folder."""
        if missing := [each for each in self.folders if not (self.project / each).is_dir()]:
            raise PreparationFailed(
                f"{name} cannot be built: it has no workspace {missing[0]}",
                remedy="name a version that has it in [tool.ldos.base] workspace, or have setup make it there",
            )

    def digest(self, store: Path) -> dict[str, object]:
        """Digests of all folders, without colcon's and hidden folders at their tops; raises as `FileDigests`."""
        digests = FileDigests(store / f"digests-sources-{digest_of({'path': str(self.project)})}.json")
        places = zip(self.folders, self.places, strict=True)
        found: dict[str, object] = {each: digests.of_folder(place, skip=_made_in(place)) for each, place in places}
        digests.save()
        return found


def name_in(manifest: Path) -> str:
    found = _NAME.search(manifest.read_text("utf-8", errors="replace"))
    return found.group(1) if found else ""


def tree_digest(revision: Revision, folders: Iterable[str]) -> dict[str, object] | None:
    """Git's digests of folders in a revision; ``None`` if the revision lacks part of their content."""
    found: dict[str, object] = {}
    for folder in folders:
        entries = entries_of(revision, folder)
        if not entries or _ELSEWHERE.search(entries):
            return None
        found[folder] = digest_of({"entries": entries}, digits=64)
    return found


def entries_of(revision: Revision, folder: str) -> str:
    """Mode, digest and name of all files of a folder in a revision; empty if there is no such folder."""
    path = (revision.project / folder).as_posix()
    name = revision.commit + (":" if path == "." else f":{path}")
    return ask_git(revision.checkout, "ls-tree", "-r", name) or ""


def is_unchanged(project: Path, folders: Iterable[str]) -> bool:
    """True if the folders have no changes or new files since the checked-out commit."""
    return ask_git(project, "status", "--porcelain", "--untracked-files=all", "--", *folders) == ""


def _made_in(workspace: Path) -> Skip:
    """Recognises colcon's output folders at the top of a workspace, and hidden folders, which it does not search."""

    def is_made(path: str, is_folder: bool) -> bool:
        place, name = os.path.split(path)
        if not is_folder or place != str(workspace):
            return False
        return name.startswith(".") or (name in _OF_COLCON and Path(path, "COLCON_IGNORE").exists())

    return is_made


SETUP: Final = "setup.bash"
_TIMEOUT_S: Final = 60
_OF_THE_SHELL: Final = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})


def find_prefix(text: str, *, folder: Path) -> Version:
    """The version of an install prefix; raises `ConfigurationError` if it is none, or cannot be sourced."""
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
    installation = OURS if ros_prefixes(environment) == ros_prefixes() else Installation(environment=environment)
    return Version(role=Role.BASE, name=f"base {text}", commit="", installation=installation)


def source(prefix: Path) -> Mapping[str, str]:
    """The current environment, with the sourced prefixes replaced by this prefix and its underlays."""
    colcon = (Path(each) for each in os.environ.get("COLCON_PREFIX_PATH", "").split(os.pathsep) if each)
    return source_over(environment_without([*ros_prefixes(), *colcon]), prefix / SETUP)


def source_over(environment: Mapping[str, str], script: Path) -> Mapping[str, str]:
    """Environment variables after sourcing a script; raises `ConfigurationError` if it failed."""
    ours = {name: value for name, value in environment.items() if name not in _OF_THE_SHELL}
    command = ["bash", "--noprofile", "--norc", "-c", 'source "$1" >&2 && exec env -0', "bash", str(script)]
    try:
        done = subprocess.run(command, env=ours, capture_output=True, check=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        output: bytes = getattr(error, "stderr", None) or b""
        details = output.decode(errors="replace")
        raise ConfigurationError(f"{script} cannot be sourced: {error}", details=details) from None
    pairs = (entry.partition("=") for entry in os.fsdecode(done.stdout).split("\0") if entry)
    sourced = {name: value for name, _, value in pairs if name not in _OF_THE_SHELL}
    # Variables that only the sourced prefixes had set must not be inherited from the current environment.
    return {**dict.fromkeys(set(os.environ) - set(ours) - _OF_THE_SHELL, ""), **sourced}


def environment_without(prefixes: Iterable[Path]) -> dict[str, str]:
    gone, left = set(prefixes), {}
    for name, value in os.environ.items():
        places = value.split(os.pathsep)
        others = [place for place in places if not any(Path(place).is_relative_to(prefix) for prefix in gone)]
        rest = value if len(others) == len(places) else os.pathsep.join(others)
        if name not in _OF_THE_SHELL and (rest or not value):
            left[name] = rest
    return left


def installed_packages(prefix: Path) -> set[str]:
    return {file.name for at in ("", "*/") for file in prefix.glob(f"{at}share/colcon-core/packages/*")}


_PREFIX_PATHS: Final = ("AMENT_PREFIX_PATH", "COLCON_PREFIX_PATH", "CMAKE_PREFIX_PATH")
_NOT_PASSED_ON: Final = ("PYTHONHOME", "VIRTUAL_ENV", "COLCON_LOG_PATH", *OF_ANOTHER_CHECKOUT)
_BUILD_SETTINGS: Final = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "ROS_DISTRO")
_TOOLS: Final = ("cmake", "cc", "c++", "python3")
_CHOSEN_BY: Final = {"cc": "CC", "c++": "CXX"}

_SHOWN: Final = 3
_LONGEST: Final = 40


@dataclass(frozen=True)
class Underlay:
    """The environment below a workspace to build, and the prefixes, tools and settings that a build depends on."""

    environment: Mapping[str, str]
    identity: Mapping[str, Any]

    def below(self, python: Path) -> Underlay:
        path = os.pathsep.join([str(python / "bin"), *filter(None, [self.environment.get("PATH")])])
        activated = {**self.environment, "VIRTUAL_ENV": str(python), "PATH": path}
        return Underlay(activated, {**self.identity, "python": str(python)})


def find_underlay(own: Iterable[Path], packages: Collection[str], *, store: Path) -> Underlay:
    """The environment of this process without the workspaces to build.

    Args:
        own: folders whose prefixes are no underlay: of the project's workspaces and of builds in the store.
        packages: packages of the project's workspaces; a colcon prefix with only such packages is no underlay either.

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
    present = [each for each in _prefixes(environment) if each.is_dir()]
    # Without those within another one, such as isolated packages' within their workspace's.
    outermost = [each for each in present if not any(each != other and each.is_relative_to(other) for other in present)]
    settings = {
        name: value
        for name, value in sorted(environment.items())
        if name in _BUILD_SETTINGS or (name.startswith("CMAKE_") and name not in _PREFIX_PATHS)
    }
    identity = {
        "prefixes": [_identify(each, store) for each in outermost],
        "tools": {name: _version(name, environment) for name in _TOOLS},
        "settings": settings,
    }
    return Underlay(environment, identity)


def changes_of(identity: Mapping[str, Any], earlier: Mapping[str, Any]) -> str:
    """Describes the differences between two underlays, by package if packages differ."""
    before, now = _flat(earlier), _flat(identity)
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    shown = [
        f"{name} {before.get(name, 'absent')[:_LONGEST]} → {now.get(name, 'absent')[:_LONGEST]}" for name in changed
    ]
    return listed(shown, most=_SHOWN)


def _flat(identity: Mapping[str, Any]) -> dict[str, str]:
    values = {**identity.get("tools", {}), **identity.get("settings", {}), "python": identity.get("python", "")}
    for prefix in identity.get("prefixes", []):
        values |= prefix["packages"]
        values[f"files of {prefix['path']}"] = prefix["files"][:12]
    return values


def _prefixes(environment: Mapping[str, str]) -> list[Path]:
    found = (each for name in _PREFIX_PATHS for each in environment.get(name, "").split(os.pathsep) if each)
    return [Path(each) for each in dict.fromkeys(found)]


def _identify(prefix: Path, store: Path) -> dict[str, Any]:
    """Identity of a prefix: versions of its packages, and a digest of files outside of packages."""
    packaged = find_packaged(prefix)
    digests = FileDigests(store / f"digests-{digest_of({'path': str(prefix)})}.json")
    files = digests.of_folder(prefix, skip=lambda path, is_folder: not is_folder and path in packaged.files)
    digests.save()
    return {"path": str(prefix), "packages": dict(sorted(packaged.versions.items())), "files": files}


def _version(program: str, environment: Mapping[str, str]) -> str:
    chosen = environment.get(_CHOSEN_BY.get(program, ""), program)
    try:
        command = [*shlex.split(chosen), "--version"]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return (done.stdout.decode(errors="replace").splitlines() or [""])[0]
