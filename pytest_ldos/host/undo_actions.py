"""Actions that undo changes of this machine: plain values that any process can execute.

`RemoveCgroup` and `RemoveTree` succeed if there is nothing to remove; `RunCommand` fails by the command's exit
code.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.text import one_line
from pytest_ldos.host.inherited import pids_with

COMMAND_LIMIT_S: Final = 10.0
CGROUP_LIMIT_S: Final = 5.0
TREE_LIMIT_S: Final = 5.0
PROCESSES_LIMIT_S: Final = 5.0
_POLL_S: Final = 0.01


@dataclass(frozen=True)
class RunCommand:
    """Runs a command, without a shell."""

    argv: tuple[str, ...]

    def undo(self) -> None:
        try:
            result = subprocess.run(
                self.argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise OSError(f"{self.argv[0]} did not end within {COMMAND_LIMIT_S:.0f} s") from None
        if result.returncode:
            words = one_line(result.stderr.decode("utf-8", errors="replace").strip())
            raise OSError(f"{' '.join(self.argv)} ended with exit code {result.returncode}: {words}")


@dataclass(frozen=True)
class RemoveCgroup:
    """Removes a control group.

    Attributes:
        path: its folder.
        refuge: folder of the group to which its processes are moved; without one they are killed.
    """

    path: str
    refuge: str = ""

    def undo(self) -> None:
        deadline = time.monotonic() + CGROUP_LIMIT_S
        while not self._is_removed():
            if time.monotonic() > deadline:
                raise OSError(f"control group {self.path} could not be removed; in it: {_members(self.path)}")
            time.sleep(_POLL_S)

    def _is_removed(self) -> bool:
        for pid in _members(self.path):
            with contextlib.suppress(ProcessLookupError):
                self._evict(pid)
        try:
            os.rmdir(self.path)  # noqa: PTH106 - the folder of a control group has files, which only the kernel removes
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def _evict(self, pid: int) -> None:
        if self.refuge:
            Path(self.refuge, "cgroup.procs").write_text(str(pid), "ascii")
        else:
            os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class WriteSetting:
    """Writes a text to an existing file, such as a kernel setting."""

    path: str
    text: str

    def undo(self) -> None:
        with open(self.path, "r+", encoding="utf-8") as file:  # noqa: PTH123 - never makes the file
            file.write(self.text)


@dataclass(frozen=True)
class RemoveTree:
    """Removes a folder with its contents, even if processes are still writing or cleaning up there."""

    path: str

    def undo(self) -> None:
        deadline = time.monotonic() + TREE_LIMIT_S
        while Path(self.path).exists():
            try:
                shutil.rmtree(self.path)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)


@dataclass(frozen=True)
class EndProcesses:
    """Kills all processes that inherited an environment variable, in any session.

    Attributes:
        name, value: name and value of the variable.
    """

    name: str
    value: str

    def undo(self) -> None:
        deadline = time.monotonic() + PROCESSES_LIMIT_S
        while pids := pids_with({self.name: self.value}):
            if time.monotonic() > deadline:
                raise OSError(f"processes {pids} survived SIGKILL")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(_POLL_S)


UndoAction = RunCommand | RemoveCgroup | WriteSetting | RemoveTree | EndProcesses
_ACTIONS: Final = {each.__name__: each for each in (RunCommand, RemoveCgroup, WriteSetting, RemoveTree, EndProcesses)}


def action_to_dict(action: UndoAction) -> dict[str, Any]:
    return {"action": type(action).__name__, **asdict(action)}


def action_from_dict(values: dict[str, Any]) -> UndoAction:
    arguments: dict[str, Any] = {key: tuple(it) if isinstance(it, list) else it for key, it in values.items()}
    action: UndoAction = _ACTIONS[str(arguments.pop("action"))](**arguments)
    return action


def undo_all(actions: list[UndoAction]) -> list[str]:
    """Executes all actions, the last registered first; returns the failures."""
    failures = []
    for action in reversed(actions):
        try:
            action.undo()
        except OSError as error:
            failures.append(str(error))
    return failures


def _members(path: str) -> list[int]:
    try:
        return [int(line) for line in Path(path, "cgroup.procs").read_text("ascii").split()]
    except OSError:
        return []
