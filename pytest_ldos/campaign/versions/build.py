"""Builds workspaces into a store, by a digest of their inputs.

Reference: colcon's event handler ``event_log`` writes one line an event to ``LOG/latest_build/events.log``:
``[seconds] (package) JobQueued|JobStarted|JobEnded: {…}``; ``JobEnded`` has the package's return code as ``rc``.

``.ldos/bases/workspace-KEY/`` holds ``install/``, ``log/``, ``build.log``, and a note once it is complete. The key is
a digest of the sources, the command, and the underlay. Files of a prefix contain its path, so that it is built in its
final place; without the note, it counts as absent.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_ldos.base.errors import ConfigurationError, PreparationFailed, refuse_unknown, suggest
from pytest_ldos.base.files import find_carried, unwritable
from pytest_ldos.base.text import listed
from pytest_ldos.campaign.versions.version import (
    BUILT,
    SHOWN,
    Announce,
    digest_of,
    kept,
    read_note,
    run_step,
    write_note,
)
from pytest_ldos.campaign.versions.workspace import (
    Underlay,
    Workspace,
    changes_of,
    find_underlay,
    installed_packages,
    name_in,
)
from pytest_ldos.host.availability import find_distro, find_ros_package
from pytest_ldos.host.processes import last_lines
from pytest_ldos.host.temporary import cache_folder
from pytest_ldos.robot.stack.ros2.installed import SEEDED_PLANNER
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.scenario_table import BaseSpec

_LOG: Final = "log"
_EVENTS: Final = "latest_build/events.log"
_EVENT: Final = re.compile(rb"^\[[\d.]+\] \(([^)]*)\) (JobQueued|JobStarted|JobEnded): (.*)$", re.MULTILINE)
_RETURN_CODE: Final = re.compile(rb"'rc': ([^,}]+)")
_HANDLERS: Final = ("console_start_end+", "event_log+")


@dataclass
class ColconLog:
    folder: Path
    packages: list[str] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    codes: dict[str, str] = field(default_factory=dict)
    _offset: int = 0

    def news(self) -> list[str]:
        """Reads up to the last whole line; returns the packages that were begun since then, each with its number."""
        known = len(self.started)
        try:
            with (self.folder / _LOG / _EVENTS).open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except OSError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for match in _EVENT.finditer(whole):
            package, event, values = match.group(1).decode(errors="replace"), match.group(2), match.group(3)
            if event == b"JobQueued":
                self.packages.append(package)
            elif event == b"JobStarted":
                self.started.append(package)
            elif code := _RETURN_CODE.search(values):
                self.codes[package] = code.group(1).decode(errors="replace")
        begun = enumerate(self.started[known:], start=known + 1)
        return [f"package {number} of {len(self.packages)}, {name}" for number, name in begun]

    def failed(self) -> str:
        """The first package whose build failed by itself; empty if none did."""
        return next((package for package, code in self.codes.items() if code.lstrip("-").isdigit() and int(code)), "")

    def end_of(self, package: str) -> str:
        """The end of a package's standard error, or else of its output."""
        logs = (self.folder / _LOG / "latest_build" / package / name for name in ("stderr.log", "stdout_stderr.log"))
        return next((lines for log in logs if (lines := last_lines(log))), "")


_NO_ROOM: Final = "No space left on device"
_LEAST_ROOM: Final = 1 << 20
_CCACHE: Final = "ccache"


class Built(NamedTuple):
    prefix: Path
    packages: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Build:
    """Inputs of a workspace's build, and the paths of its results."""

    name: str
    workspace: Workspace
    sources: Mapping[str, object]
    spec: BaseSpec
    underlay: Underlay
    store: Path
    lock: int = -1  # descriptor of the lock of its sources; -1 for none
    is_unchanged: Callable[[], bool] = lambda: True  # checks that the sources still have these digests

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """Everything that the result depends on."""
        how = {
            "build": list(self.spec.build),
            "packages_up_to": list(self.spec.packages_up_to),
            "metas": [each.read_text("utf-8", errors="replace") for each in self.workspace.metas()],
        }
        return {"sources": dict(self.sources), **how, "underlay": dict(self.underlay.identity)}

    @cached_property
    def folder(self) -> Path:
        return self.store.resolve() / f"{BUILT}{digest_of(self.recipe, digits=16)}"

    @property
    def install(self) -> Path:
        return self.folder / "install"

    @property
    def log(self) -> Path:
        return self.folder / "build.log"

    @property
    def scratch(self) -> Path:
        """The folder of temporary files: at a fixed path relative to the sources, for ccache."""
        return (self.workspace.scratch_parent or self.folder) / f"build-{self.folder.name.removeprefix(BUILT)}"

    def command(self) -> list[str]:
        before, after = self.spec.build[: self.spec.verb_at], self.spec.build[self.spec.verb_at + 1 :]
        metas = [str(each) for each in self.workspace.metas()]
        return [
            *before,
            "--log-base",
            str(self.folder / _LOG),
            "build",
            *after,
            "--base-paths",
            *map(str, self.workspace.places),
            "--build-base",
            str(self.scratch),
            "--install-base",
            str(self.install),
            "--event-handlers",
            *_HANDLERS,
            *(["--packages-up-to", *self.spec.packages_up_to] if self.spec.packages_up_to else []),
            *(["--metas", *metas] if metas and "--metas" not in self.spec.build else []),
        ]

    def failed(self, reason: str, *, details: str = "", remedy: str = "") -> PreparationFailed:
        return PreparationFailed(f"{self.name} cannot be built: {reason}", details=details, remedy=remedy)


def build_workspace(build: Build, *, checkout: Path, announce: Announce) -> Built:
    """Returns a built workspace, from the store if present.

    Raises `PreparationFailed` with the version, the failed package and the end of its log.
    """
    folder = build.folder

    def is_whole() -> bool:
        note = read_note(folder)
        is_ours = note.get("recipe") == build.recipe and (build.install / "local_setup.bash").is_file()
        return is_ours and set(note["packages"]) <= installed_packages(build.install)

    def make(lock: int) -> None:
        shutil.rmtree(build.scratch, ignore_errors=True)
        announce(f"building {build.name}{_why_again(build)}: the first time takes minutes; log: {build.log}")
        try:
            packages = _run(build, lock, announce)
            _refuse_unusable(build)
        except BaseException:
            shutil.rmtree(build.install, ignore_errors=True)
            raise
        finally:
            shutil.rmtree(build.scratch, ignore_errors=True)
        write_note(folder, {"recipe": build.recipe, "packages": packages})

    with kept(folder, build.name, checkout=checkout, announce=announce, is_whole=is_whole, make=make):
        return Built(build.install, frozenset(read_note(folder)["packages"]))


def _why_again(build: Build) -> str:
    """Describes what changed in the underlay since the same sources were built before."""
    recipe = build.recipe
    for folder in sorted(build.store.glob(f"{BUILT}*")):
        kept = read_note(folder).get("recipe", {})
        if kept and {**kept, "underlay": ""} == {**recipe, "underlay": ""}:
            return f" again, because its underlay changed ({changes_of(recipe['underlay'], kept['underlay'])})"
    return ""


def _run(build: Build, lock: int, announce: Announce) -> list[str]:
    program = build.spec.build[0]
    if shutil.which(program, path=build.underlay.environment.get("PATH")) is None:
        remedy = "sudo apt-get install python3-colcon-common-extensions (or pip install colcon-common-extensions)"
        raise build.failed(f"{program} is not installed", remedy=remedy)
    log = ColconLog(build.folder)
    code = run_step(
        build.command(),
        folder=build.workspace.places[0],
        log=build.log,
        environment=_environment(build),
        holds=[each for each in (lock, build.lock) if each >= 0],
        describe=lambda _: [f"building {build.name}: {each}" for each in log.news()],
        announce=announce,
    )
    if code != 0 or log.failed():
        raise _failure(build, log, code)
    _require_packages(build, log.packages)
    if not log.packages:
        raise build.failed("colcon finds no package in its workspace", remedy="see [tool.ldos.base] workspace")
    return sorted(log.packages)


def _require_packages(build: Build, there: Collection[str]) -> None:
    if missing := [each for each in build.spec.packages_up_to if each not in there]:
        raise build.failed(
            f"its workspace has no package {', '.join(missing)}: it was removed or renamed",
            remedy=suggest(missing[0], there) if there else "see [tool.ldos.base] packages_up_to",
        )


def _environment(build: Build) -> dict[str, str]:
    mine = {"COLCON_DEFAULTS_FILE": str(build.folder / "none")}  # a user's defaults are not part of the recipe
    environment = {**build.underlay.environment, **mine}
    is_called = any(_CCACHE in environment.get(name, "") for name in ("CC", "CXX"))
    if shutil.which(_CCACHE, path=environment.get("PATH")) is None:
        return environment
    common = os.path.commonpath([build.workspace.project, build.scratch])
    launched = {} if is_called else {f"CMAKE_{language}_COMPILER_LAUNCHER": _CCACHE for language in ("C", "CXX")}
    # Paths are hashed relative to the build's folder, whose name differs each time.
    return {**launched, "CCACHE_BASEDIR": common, "CCACHE_NOHASHDIR": "true", **environment}


def _failure(build: Build, log: ColconLog, code: int) -> PreparationFailed:
    package = log.failed()
    details = (log.end_of(package) if package else "") or last_lines(build.log)
    if _NO_ROOM in details or shutil.disk_usage(build.folder).free < _LEAST_ROOM:
        full = unwritable(build.folder, OSError(errno.ENOSPC, _NO_ROOM))
        # Colcon's own log may lie there as well, and then lack the end of the package that failed.
        where = package or " or ".join(each for each in log.started if each not in log.codes)
        return build.failed(f"the disk is full{f', in package {where}' if where else ''}", remedy=full.remedy)
    if not package:
        _require_packages(build, build.workspace.packages())
    reason = f"package {package} failed" if package else f"colcon ended with exit code {code}"
    remedy = f"see {build.folder / _LOG}; [tool.ldos.base] build and setup say how it is built"
    return build.failed(reason, details=details, remedy=remedy)


def _refuse_unusable(build: Build) -> None:
    """Refuses a prefix with links to sources or build files, which would change it, and sources that changed."""
    outside = (build.workspace.project.resolve(), build.scratch.resolve())
    for folder, folders, files in os.walk(build.install):
        for path in (Path(folder, name) for name in (*folders, *files)):
            if not path.is_symlink() or path.resolve().is_relative_to(build.install):
                continue
            if any(path.resolve().is_relative_to(each) for each in outside):
                raise build.failed(
                    f"its prefix has a link to {path.resolve()}, and would change with it",
                    remedy="build without --symlink-install, and install copies",
                )
    if not build.is_unchanged():
        raise build.failed("its sources changed while they were built", remedy="run it again")


def _newest_ns(package: Path) -> int:
    """Time of the last change of a package's files, without hidden and compiled Python files."""
    newest = 0
    for folder, folders, files in os.walk(package):
        folders[:] = [each for each in folders if not each.startswith((".", "__pycache__"))]
        paths = (Path(folder, each) for each in files if not each.startswith("."))
        newest = max([newest, *(path.stat().st_mtime_ns for path in paths if path.exists())])
    return newest


def describe_stale(root: Path, folders: Sequence[str]) -> tuple[str, ...]:
    """A note on packages of the project's workspaces whose sources are newer than their install.

    The time of an install is that of colcon's note; packages installed by other tools are not compared.
    """
    stale = []
    for manifest in Workspace(root, tuple(each for each in folders if (root / each).is_dir())).manifests():
        name = name_in(manifest)
        prefix = find_ros_package(name)
        note = prefix / "share/colcon-core/packages" / name if prefix and name else None
        if note and note.is_file() and _newest_ns(manifest.parent) > note.stat().st_mtime_ns:
            stale.append(name)
    if not stale:
        return ()
    shown, remedy = listed(sorted(stale), SHOWN), "build the workspace, or measure with --ldos-build"
    return (f"the sources of {shown} are newer than what is installed and was measured: {remedy}",)


_PANDA: Final = ("ldos_bringup", "ldos_panda_config")


def needed_by(stack: StackSpec) -> tuple[str, ...]:
    is_panda = stack.ros2.is_panda
    client = ("ldos_goal_client",) if stack.moves_arm else ()
    probe = ("ldos_control_probe",) if stack.ros2.controllers else ()
    planner = (SEEDED_PLANNER,) if is_panda or stack.ros2.seeded_planner else ()
    return (*client, *probe, *planner, *(_PANDA if is_panda else ()))


def build_packages(names: Collection[str], *, announce: Announce) -> Path | None:
    """Builds packages and their dependencies over the sourced underlay; returns their setup script.

    Packages in a sourced prefix are left out; ``None`` if all are.

    Raises:
        ConfigurationError: a package is unknown, or no ROS 2 is sourced.
        PreparationFailed: the message has the failed package and the end of its log.
    """
    home = find_carried("ros_ws")
    workspace = Workspace(home.parent, (home.name,))
    refuse_unknown(names, workspace.packages(), "ROS package of pytest-ldos")
    distro = find_distro()
    if distro is None or not distro.is_sourced:
        raise ConfigurationError("no ROS 2 is sourced", remedy="source its setup script, then do this again")
    missing = tuple(sorted(each for each in set(names) if find_ros_package(each) is None))
    if not missing:
        return None
    store = cache_folder(os.environ) / "pytest-ldos/ros-packages"
    build = Build(
        name="the ROS packages of pytest-ldos",
        workspace=workspace,
        sources=workspace.digest(store),
        spec=BaseSpec(packages_up_to=missing),
        underlay=find_underlay([store], (), store=store),
        store=store,
    )
    return build_workspace(build, checkout=store, announce=announce).prefix / "local_setup.sh"
