"""The checks' view of a machine: files below a root, an environment, processes, programs."""

from __future__ import annotations

import grp
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.base.errors import MendFailed
from pytest_ldos.host.cpu import read_setting
from pytest_ldos.host.interference import Interference, measure_briefly
from pytest_ldos.host.lock import find_holder
from pytest_ldos.host.ros import find_distro
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind

PROGRAM_TIMEOUT_S: Final = 20.0


@dataclass(frozen=True)
class ProcessFacts:
    """A running process.

    Attributes:
        created: its start time; with `pid` it distinguishes the process from any other.
        environment: its environment variables, if readable.
    """

    pid: int
    parent: int
    name: str
    command: tuple[str, ...]
    created: float
    uid: int
    environment: Mapping[str, str] = field(default_factory=dict)


def list_processes() -> list[ProcessFacts]:
    """All running processes, without zombies."""
    attributes = ["pid", "ppid", "name", "cmdline", "create_time", "uids", "status", "environ"]
    found = [process.info for process in psutil.process_iter(attributes)]
    return [
        ProcessFacts(
            pid=info["pid"],
            parent=info["ppid"],
            name=info["name"],
            command=tuple(info["cmdline"] or ()),
            created=info["create_time"],
            uid=info["uids"].effective,
            environment=info["environ"] or {},
        )
        for info in found
        if info["status"] != psutil.STATUS_ZOMBIE and info["uids"] is not None
    ]


def _names_of(groups: Iterable[int]) -> list[str]:
    names = {entry.gr_gid: entry.gr_name for entry in grp.getgrall()}
    return [names[group] for group in groups if group in names]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The state of a machine that the checks read.

    Attributes:
        root: root of its files.
        environment: environment of processes to start.
        uid: uid of the user who would start them.
        groups: names of that user's groups.
        output: folder of results and traces.
        stack: the stack to be measured.
        python_path: folders to search for Python packages, instead of ``sys.path``.
        processes: lists the running processes.
        measuring: pid of the running measuring session.
        interference: measures other processes' use of the machine for a moment.
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    uid: int = field(default_factory=os.geteuid)
    groups: Sequence[str] = field(default_factory=lambda: _names_of(os.getgroups()))
    output: Path = Path(".ldos")
    stack: StackSpec = field(default_factory=StackSpec)
    python_path: Sequence[str] | None = None
    processes: Callable[[], Sequence[ProcessFacts]] = list_processes
    measuring: Callable[[], int | None] = find_holder
    interference: Callable[[], Interference] = measure_briefly

    @property
    def asks_for_ros2(self) -> bool:
        """True if ROS 2 is requested by name."""
        return self.stack.kind is StackKind.ROS2

    @property
    def wants_ros2(self) -> bool:
        """True if ROS 2 is requested by name, or sourced with an automatically chosen stack."""
        return self.asks_for_ros2 or (self.stack.kind is StackKind.AUTO and self.has_ros2)

    @property
    def wants_embedded(self) -> bool:
        return self.stack.kind is StackKind.EMBEDDED or (self.stack.kind is StackKind.AUTO and not self.has_ros2)

    @property
    def has_ros2(self) -> bool:
        """True if a distro is sourced."""
        distro = find_distro(self.environment, root=self.root)
        return distro is not None and distro.is_sourced

    @property
    def temporary(self) -> Path:
        """Folder of the user's temporary files."""
        named = self.environment.get("TMPDIR", "")
        return Path(named) if named else self.path("tmp")

    def path(self, place: str) -> Path:
        """Path below the root; `place` may be absolute."""
        return self.root / place.lstrip("/")

    def read(self, place: str) -> str:
        """Content of a small file; empty if it cannot be read."""
        return read_setting(self.path(place))

    def write(self, place: str, value: str) -> None:
        """Writes a setting, through sudo unless the user is root.

        Raises:
            MendFailed: neither is permitted.
        """
        path = self.path(place)
        if self.uid == 0:
            self._write_as_root(path, value)
            return
        done = self.run(["sudo", "-n", "tee", str(path)], given=value)
        if done is None or done.returncode != 0:
            raise MendFailed(f"{path} can be written by root only", remedy=f"echo {value} | sudo tee {path}")

    def _write_as_root(self, path: Path, value: str) -> None:
        try:
            # Like a shell's `>`, except that the file must exist.
            with open(os.open(path, os.O_WRONLY | os.O_TRUNC), "w", encoding="utf-8") as file:  # noqa: PTH123
                file.write(value)
        except OSError as error:
            raise MendFailed(
                f"{path} cannot be written: {error.strerror}",
                remedy="in a container or virtual machine, set it on the host",
            ) from None

    def run(self, command: Sequence[str], *, given: str = "") -> subprocess.CompletedProcess[str] | None:
        """Runs a program; ``None`` if it is not installed or does not return."""
        if shutil.which(command[0], path=self.environment.get("PATH")) is None:
            return None
        try:
            return subprocess.run(
                command,
                env=dict(self.environment),
                input=given,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=PROGRAM_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
