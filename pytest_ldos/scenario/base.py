"""The ``[tool.ldos.base]`` table: commands that set up a revision's checkout and build its ROS 2 workspace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown, require

_WHERE: Final = "[tool.ldos.base]"
_OURS: Final = "each build has a folder of its own, chosen by what it is built from"
_REFUSED: Final = {
    "--symlink-install": "links to sources would change what is installed as soon as these change; files are copied",
    "--build-base": _OURS,
    "--install-base": _OURS,
    "--log-base": _OURS,
    "--base-paths": f"{_WHERE} workspace names the folders",
    "--packages-up-to": f"{_WHERE} packages_up_to names the packages",
}
"""Options of ``colcon build`` that must not be given, each with the reason."""


@dataclass(frozen=True, kw_only=True)
class BaseSpec:
    """Setup of a revision in a checkout of it, and build of its ROS 2 workspace.

    Attributes:
        setup: command that makes its environment; empty for a virtual environment with the dependencies in the
            revision's pyproject.toml, or for none with the `ros2` stack.
        python: its interpreter, below the project's folder.
        workspace: folders of ROS packages, below the project's folder; one as a text, several as a list. Empty for
            ``src`` if the project has it, or else the project's folder.
        build: command that builds them: ``colcon build`` with options other than those of location and selection.
        packages_up_to: packages to build with their dependencies in the workspace; empty for all.
    """

    setup: tuple[str, ...] = ()
    python: str = ".venv/bin/python"
    workspace: tuple[str, ...] = ()
    build: tuple[str, ...] = (
        "colcon",
        "build",
        "--cmake-args",
        "-DCMAKE_BUILD_TYPE=Release",
        "-DBUILD_TESTING=OFF",
    )
    packages_up_to: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(bool(self.python), f"{_WHERE} python is empty", remedy="name the interpreter that setup makes")
        for folder in self.workspace:
            is_below = bool(folder) and not PurePosixPath(folder).is_absolute() and ".." not in folder.split("/")
            require(is_below, f"{_WHERE} workspace {folder!r} is not below the project", remedy='as in "ros_ws"')
        self._require_colcon()

    def _require_colcon(self) -> None:
        calls = [PurePosixPath(word).name == "colcon" for word in self.build]
        require(
            any(calls) and "build" in self.build[calls.index(True) :],
            f"{_WHERE} build is {list(self.build)!r}, which does not call colcon build",
            remedy='write it as ["colcon", "build", "--cmake-args", "-DCMAKE_BUILD_TYPE=Release"]',
        )
        for word in self.build:
            reason = _REFUSED.get(word.partition("=")[0])
            require(reason is None, f"{_WHERE} build must not have {word}", remedy=reason or "")

    def workspaces(self, project: Path) -> tuple[str, ...]:
        """The folders of packages of a project, relative to its own."""
        usual = "src" if (project / "src").is_dir() else "."
        return self.workspace or (usual,)

    @property
    def verb_at(self) -> int:
        """Index of ``build`` in the command; options before it are those of colcon itself."""
        first = next(index for index, word in enumerate(self.build) if PurePosixPath(word).name == "colcon")
        return self.build.index("build", first)


def parse_base(values: Mapping[str, Any]) -> BaseSpec:
    """Parses a ``[tool.ldos.base]`` table.

    Raises:
        ConfigurationError: an unknown key (the nearest known one is named), or a wrong type.
    """
    refuse_unknown(values, {"setup", "python", "workspace", "build", "packages_up_to"}, f"key {_WHERE}")
    python, workspace = values.get("python", BaseSpec.python), values.get("workspace", BaseSpec.workspace)
    if not isinstance(python, str):
        raise ConfigurationError(f"{_WHERE} python is {python!r}", remedy="it must be a text")
    return BaseSpec(
        setup=_words("setup", values.get("setup", ())),
        python=python,
        workspace=(workspace,) if isinstance(workspace, str) else _words("workspace", workspace),
        build=_words("build", values.get("build", BaseSpec.build)),
        packages_up_to=_words("packages_up_to", values.get("packages_up_to", ())),
    )


def _words(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(word, str) for word in value):
        remedies = {
            "setup": 'write the command as a list of its words, as in ["make", "setup"]',
            "build": 'write the command as a list of its words, as in ["colcon", "build"]',
            "workspace": 'name one folder, as in "ros_ws", or several as a list',
        }
        remedy = remedies.get(key, 'it must be a list of names, as in ["arm_bringup"]')
        raise ConfigurationError(f"{_WHERE} {key} is {value!r}", remedy=remedy)
    return tuple(value)
