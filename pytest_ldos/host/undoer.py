"""Actions that undo changes of this machine, and a program that executes them when their owner has ended.

``python -m pytest_ldos.host.undoer OWNER_PID`` reads actions, one JSON object a line, and answers each with
``registered``. On request (``{"undo": true}``), at the end of standard input, at the owner's death (a forked child may
still hold the pipe) or on SIGTERM, it executes them, the last first, prints a JSON list of the failures, and exits.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.text import one_line
from pytest_ldos.host.cpu import read_setting
from pytest_ldos.host.fingerprint import pids_with
from pytest_ldos.host.processes import comes_true

COMMAND_LIMIT_S: Final = 10.0
CGROUP_LIMIT_S: Final = 5.0
TREE_LIMIT_S: Final = 5.0
PROCESSES_LIMIT_S: Final = 5.0
_POLL_S: Final = 0.01


@dataclass(frozen=True)
class RunCommand:
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
    """Removes a control group, if there is one; its processes move to the group `refuge`, or are killed."""

    path: str
    refuge: str = ""

    def undo(self) -> None:
        if not comes_true(self._is_removed, limit_s=CGROUP_LIMIT_S, poll_s=_POLL_S):
            raise OSError(f"control group {self.path} could not be removed; in it: {_members(self.path)}")

    def _is_removed(self) -> bool:
        for pid in _members(self.path):
            with contextlib.suppress(ProcessLookupError):
                if self.refuge:
                    Path(self.refuge, "cgroup.procs").write_text(str(pid), "ascii")
                else:
                    os.kill(pid, signal.SIGKILL)
        try:
            os.rmdir(self.path)  # noqa: PTH106 - the folder of a control group has files, which only the kernel removes
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


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
    """Kills all processes that inherited an environment variable with a value, in any session."""

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
    return [int(line) for line in read_setting(Path(path, "cgroup.procs")).split()]


REGISTERED: Final = "registered"
UNDO: Final = {"undo": True}
_CHUNK: Final = 65536


class _Undoer:
    def __init__(self, owner: int) -> None:
        self._actions: list[UndoAction] = []
        self._unread = b""
        self._wakeup, self._signals = os.pipe()
        os.set_blocking(self._signals, False)
        signal.set_wakeup_fd(self._signals)
        signal.signal(signal.SIGTERM, lambda *_: None)  # only against the default action: the descriptor has it
        self._owner: int | None = None
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(owner)  # becomes readable when the owner ends
            self._owner = descriptor if os.getppid() == owner else None

    def run(self) -> int:
        if self._owner is not None:
            self._await_reason(self._owner)
        failures = undo_all(self._actions)
        for failure in failures:
            sys.stderr.write(f"could not be undone: {failure}\n")
        _say(json.dumps(failures))
        return 1 if failures else 0

    def _await_reason(self, owner: int) -> None:
        with selectors.DefaultSelector() as selector:
            for descriptor in (sys.stdin.fileno(), owner, self._wakeup):
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                # Pending registrations are read first, because their changes may have been made.
                if sys.stdin.fileno() in ready and self._should_end():
                    return
                if ready - {sys.stdin.fileno()}:
                    return

    def _should_end(self) -> bool:
        heard = os.read(sys.stdin.fileno(), _CHUNK)
        *lines, self._unread = (self._unread + heard).split(b"\n")
        for line in lines:
            values = json.loads(line)
            if values == UNDO:
                return True
            arguments: dict[str, Any] = {key: tuple(it) if isinstance(it, list) else it for key, it in values.items()}
            action: UndoAction = _ACTIONS[str(arguments.pop("action"))](**arguments)
            self._actions.append(action)
            _say(REGISTERED)
        return not heard


def _say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), f"{line}\n".encode())


def main() -> int:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    return _Undoer(int(sys.argv[1])).run()


if __name__ == "__main__":
    sys.exit(main())
