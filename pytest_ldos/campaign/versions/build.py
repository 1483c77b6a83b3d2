"""Builds workspaces into a store: each by what it is built from, kept for later runs.

``.ldos/bases/workspace-KEY/`` holds ``install/``, ``log/``, ``build.log``, and a note once it is complete. The key is
a digest of the sources, of the command, and of the underlay. A prefix holds its own path in many files, so it is built
where it stays; until the note is there, it counts as absent.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import PreparationFailed
from pytest_ldos.base.nearest import suggest
from pytest_ldos.base.writable import unwritable
from pytest_ldos.campaign.versions.colcon import ColconLog, build_command
from pytest_ldos.campaign.versions.kept import BUILT, Announce, digest_of, kept, read_note, write_note
from pytest_ldos.campaign.versions.prefixes import installed_packages
from pytest_ldos.campaign.versions.steps import Step, run_step
from pytest_ldos.campaign.versions.underlay import Underlay, changes_of
from pytest_ldos.campaign.versions.workspace import Workspace
from pytest_ldos.host.logs import last_lines
from pytest_ldos.scenario.base import BaseSpec

_DIGITS: Final = 16
_INSTALL: Final = "install"
_NO_ROOM: Final = "No space left on device"
_LEAST_ROOM: Final = 1 << 20
_CCACHE: Final = "ccache"


@dataclass(frozen=True)
class Built:
    """A built workspace.

    Attributes:
        prefix: the folder that it is installed in.
        packages: names of the packages in it.
    """

    prefix: Path
    packages: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Build:
    """A workspace that is to be built.

    Attributes:
        name: of the version, for messages.
        sources: digests of its sources, by folder.
        lock: descriptor of the lock of its sources; -1 for none.
        is_unchanged: checks that the sources still have these digests.
    """

    name: str
    workspace: Workspace
    sources: Mapping[str, object]
    spec: BaseSpec
    underlay: Underlay
    store: Path
    lock: int = -1
    is_unchanged: Callable[[], bool] = lambda: True

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """Everything that the result depends on."""
        how = {
            "build": list(self.spec.build),
            "packages_up_to": list(self.spec.packages_up_to),
            "metas": [each.read_text("utf-8", errors="replace") for each in self.workspace.metas()],
        }
        return {"sources": dict(self.sources), **how, "underlay": dict(self.underlay.identity)}

    def failed(self, reason: str, *, details: str = "", remedy: str = "") -> PreparationFailed:
        return PreparationFailed(f"{self.name} cannot be built: {reason}", details=details, remedy=remedy)


@dataclass(frozen=True)
class _Place:
    """Paths of a build."""

    folder: Path
    build: Path
    lock: int = -1

    @property
    def install(self) -> Path:
        return self.folder / _INSTALL

    @property
    def log(self) -> Path:
        return self.folder / "build.log"


def build_workspace(build: Build, *, checkout: Path, announce: Announce) -> Built:
    """Returns a workspace as it is installed, which is built unless it is in the store.

    Args:
        checkout: the user's checkout.
        announce: called with progress messages.

    Raises:
        PreparationFailed: names the version, the package that failed, and has the end of its log.
    """
    key = digest_of(build.recipe, digits=_DIGITS)
    folder = build.store.resolve() / f"{BUILT}{key}"
    place = _Place(folder, build.workspace.scratch(folder) / f"build-{key}")
    with kept(
        folder,
        build.name,
        checkout=checkout,
        announce=announce,
        is_whole=lambda: _is_whole(read_note(folder), place, build),
        make=lambda lock: _make(build, replace(place, lock=lock), announce),
    ):
        return Built(place.install, frozenset(read_note(folder)["packages"]))


def _is_whole(note: Mapping[str, Any], place: _Place, build: Build) -> bool:
    """True for a prefix that was built from this to its end, and from which no package was removed."""
    if note.get("recipe") != build.recipe:
        return False
    return (place.install / "local_setup.bash").is_file() and set(note["packages"]) <= installed_packages(place.install)


def _make(build: Build, place: _Place, announce: Announce) -> None:
    shutil.rmtree(place.build, ignore_errors=True)
    why = _why_again(build)
    announce(f"building {build.name}{why}: the first time takes minutes; log: {place.log}")
    try:
        packages = _run(build, place, announce)
        _refuse_links(build, place)
        _refuse_changes(build)
    except BaseException:
        shutil.rmtree(place.install, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(place.build, ignore_errors=True)
    write_note(place.folder, {"recipe": build.recipe, "packages": packages})


def _why_again(build: Build) -> str:
    """Names what changed below a workspace that was built from the same sources before."""
    recipe = build.recipe
    for folder in sorted(build.store.glob(f"{BUILT}*")):
        kept = read_note(folder).get("recipe", {})
        if kept and {**kept, "underlay": ""} == {**recipe, "underlay": ""}:
            return f" again, because its underlay changed ({changes_of(recipe['underlay'], kept['underlay'])})"
    return ""


def _run(build: Build, place: _Place, announce: Announce) -> list[str]:
    """Runs colcon; returns the names of the packages that it built."""
    _require_program(build)
    log = ColconLog(place.folder)

    def describe(_: float) -> list[str]:
        return [f"building {build.name}: {each}" for each in log.news()]

    step = Step(
        command=build_command(build.spec, build.workspace, build=place.build, folder=place.folder),
        folder=build.workspace.places[0],
        log=place.log,
        environment=_environment(build, place),
        holds=[each for each in (place.lock, build.lock) if each >= 0],
    )
    code = run_step(step, describe=describe, announce=announce)
    if code != 0 or log.failed():
        raise _failure(build, place, log, code)
    _require_packages(build, log.packages)
    if not log.packages:
        raise build.failed("colcon finds no package in its workspace", remedy="see [tool.ldos.base] workspace")
    return sorted(log.packages)


def _require_program(build: Build) -> None:
    program = build.spec.build[0]
    if shutil.which(program, path=build.underlay.environment.get("PATH")) is None:
        remedy = "sudo apt-get install python3-colcon-common-extensions (or pip install colcon-common-extensions)"
        raise build.failed(f"{program} is not installed", remedy=remedy)


def _require_packages(build: Build, there: Collection[str]) -> None:
    """Refuses a workspace without a package that was asked for."""
    missing = [each for each in build.spec.packages_up_to if each not in there]
    if missing:
        raise build.failed(
            f"its workspace has no package {', '.join(missing)}: it was removed or renamed",
            remedy=suggest(missing[0], there) if there else "see [tool.ldos.base] packages_up_to",
        )


def _environment(build: Build, place: _Place) -> dict[str, str]:
    """Variables of the build; compilers run below ccache where it is installed."""
    mine = {"COLCON_DEFAULTS_FILE": str(place.folder / "none")}  # a user's own defaults are no part of the recipe
    environment = {**build.underlay.environment, **mine}
    is_called = any(_CCACHE in environment.get(name, "") for name in ("CC", "CXX"))
    if shutil.which(_CCACHE, path=environment.get("PATH")) is None:
        return environment
    common = os.path.commonpath([build.workspace.project, place.build])
    launched = {} if is_called else {f"CMAKE_{language}_COMPILER_LAUNCHER": _CCACHE for language in ("C", "CXX")}
    # Paths within it are hashed relative to the build's folder, and this does not count: it has another name each time.
    return {**launched, "CCACHE_BASEDIR": common, "CCACHE_NOHASHDIR": "true", **environment}


def _failure(build: Build, place: _Place, log: ColconLog, code: int) -> PreparationFailed:
    package = log.failed()
    details = (log.end_of(package) if package else "") or last_lines(place.log)
    if _NO_ROOM in details or shutil.disk_usage(place.folder).free < _LEAST_ROOM:
        full = unwritable(place.folder, OSError(errno.ENOSPC, _NO_ROOM))
        # Colcon's own log may lie there as well, and then lack the end of the package that failed.
        where = package or " or ".join(each for each in log.started if each not in log.codes)
        return build.failed(f"the disk is full{f', in package {where}' if where else ''}", remedy=full.remedy)
    if not package:
        _require_packages(build, build.workspace.packages())
    reason = f"package {package} failed" if package else f"colcon ended with exit code {code}"
    remedy = f"see {place.folder / 'log'}; [tool.ldos.base] build and setup say how it is built"
    return build.failed(reason, details=details, remedy=remedy)


def _refuse_changes(build: Build) -> None:
    if not build.is_unchanged():
        raise build.failed("its sources changed while they were built", remedy="run it again")


def _refuse_links(build: Build, place: _Place) -> None:
    """Refuses a prefix with links to sources or to files of the build: it would change with them, or break."""
    outside = (build.workspace.project.resolve(), place.build.resolve())
    for folder, folders, files in os.walk(place.install):
        for name in (*folders, *files):
            path = Path(folder, name)
            if not path.is_symlink() or path.resolve().is_relative_to(place.install):
                continue
            if any(path.resolve().is_relative_to(each) for each in outside):
                raise build.failed(
                    f"its prefix has a link to {path.resolve()}, and would change with it",
                    remedy="build without --symlink-install, and install copies",
                )
