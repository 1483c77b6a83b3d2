"""Changes of this machine that are undone, temporary folders, clean termination by SIGTERM, and user folders.

An action is registered before its change is made::

    with undone_at_end(log) as undo:
        undo.register(RunCommand(("tc", "qdisc", "del", "dev", "lo", "root")))
        subprocess.run(["tc", "qdisc", "add", …])

``python -m pytest_ldos.host.temporary OWNER_PID`` reads actions, one JSON object a line, and answers each with
``registered``. On request (``{"undo": true}``), at the end of standard input, at the owner's death (a forked child may
still hold the pipe) or on SIGTERM, it executes them, the last first, prints a JSON list of the failures, and exits.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from pytest_ldos.base.errors import MendFailed, NotWritten
from pytest_ldos.base.files import opened_log, writing
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


class Undo:
    """Registered actions, and the process that executes them; `log` gets a line per failed action.

    The process has its own session, so that neither Ctrl-C nor the end of the process group ends it.
    """

    def __init__(self, log: Path) -> None:
        self._actions: list[UndoAction] = []
        with opened_log(log) as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pytest_ldos.host.temporary", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def register(self, action: UndoAction) -> None:
        """Registers an action, which is now executed in any case; raises `MendFailed` if the process has ended."""
        if self._ask({"action": type(action).__name__, **asdict(action)}) != REGISTERED:
            raise MendFailed(
                "the process that undoes what is changed on this machine has ended",
                remedy="nothing was changed; run it again, and look at what ends processes here",
            )
        self._actions.append(action)

    def undo(self) -> None:
        """Undoes everything, the last change first, but only once; raises `MendFailed` if some could not be undone."""
        actions, self._actions = self._actions, []
        answer = self._ask(dict(UNDO))
        while answer == REGISTERED:  # answer to an interrupted `register`
            answer = self._hear()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        # If the process was killed, this one executes the actions.
        failures = json.loads(answer) if answer else undo_all(actions)
        if failures:
            raise MendFailed("could not be undone: " + "; ".join(failures), remedy="undo it by hand")

    def _ask(self, request: dict[str, object]) -> str:
        """Line of the answer; empty if the process has ended."""
        assert self._process.stdin is not None
        if self._process.stdin.closed:
            return "[]"
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self._hear()

    def _hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def undone_at_end(log: Path) -> Iterator[Undo]:
    """Executes the registered actions at the end of the ``with`` block; raises `MendFailed` if one failed."""
    undo = Undo(log)
    try:
        yield undo
    finally:
        undo.undo()


LONGEST_SOCKET: Final = 107
"""Largest length of a Unix socket's path without the terminating zero (``sun_path`` in unix(7))."""

SHORT_FOLDERS: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - private folders are made in them
"""Temporary folders for sockets if the user's has too long a path."""


@contextmanager
def temporary_folder(prefix: str, *, within: Path | None = None) -> Iterator[Path]:
    """Creates a private folder for the ``with`` block, by default in the system's temporary folder (`TMPDIR`).

    Raises `NotWritten` or `MendFailed` if it cannot be created, or removed.
    """
    folder = temporary_place(prefix) if within is None else within.absolute() / f"{prefix}{secrets.token_hex(8)}"
    with undone_at_end(Path(os.devnull)) as undo:
        make_folder(folder, undo)
        yield folder


def temporary_place(prefix: str, *, socket: str = "") -> Path:
    """Unused path for a temporary folder; raises `NotWritten` if there is none to write to.

    If the longest Unix socket in it (a relative path) has no room in the system's temporary folder, it is in one of
    `SHORT_FOLDERS`.
    """
    name = f"{prefix}{secrets.token_hex(8)}"
    try:
        usual = Path(tempfile.gettempdir())
    except FileNotFoundError as error:  # all folders failed
        raise NotWritten(
            f"no temporary folder can be written: {error.strerror}",
            remedy="make room there, or set TMPDIR to a folder that can be written",
        ) from None
    others = [Path(folder) for folder in SHORT_FOLDERS if socket and os.access(folder, os.W_OK | os.X_OK)]
    room = LONGEST_SOCKET - len(os.fsencode(Path("/", name, socket)))
    for folder in (usual, *others):
        if not socket or len(os.fsencode(folder)) <= room:
            return folder / name
    raise NotWritten(
        f"{usual} is too long a path for Unix sockets, and none of {', '.join(SHORT_FOLDERS)} can be written",
        remedy=f"set TMPDIR to a folder whose path has at most {room} bytes",
    )


def make_folder(folder: Path, undo: Undo) -> None:
    """Creates a private folder that `undo` removes; raises `NotWritten` if that is not possible."""
    undo.register(RemoveTree(str(folder)))
    with writing(folder, otherwise="set TMPDIR to a folder elsewhere"):
        folder.mkdir(mode=0o700)


REASON: Final = "the run was ended by SIGTERM"


class Termination:
    def __init__(self) -> None:
        self._is_settled = False

    def settle(self) -> None:
        """Ignores the signal from now on, because only the results remain to be written."""
        self._is_settled = True

    def take(self, number: int, frame: FrameType | None) -> None:
        if not self._is_settled:
            raise KeyboardInterrupt(REASON)


@contextmanager
def terminated_like_interrupted() -> Iterator[Termination]:
    """Makes SIGTERM raise KeyboardInterrupt inside the ``with`` block of the main thread, unless it has a handler."""
    is_ours = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    termination = Termination()
    if is_ours:
        signal.signal(signal.SIGTERM, termination.take)
    try:
        yield termination
    finally:
        if is_ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def state_folder(environment: Mapping[str, str]) -> Path:
    return _folder(environment, "XDG_STATE_HOME", ".local/state")


def cache_folder(environment: Mapping[str, str]) -> Path:
    return _folder(environment, "XDG_CACHE_HOME", ".cache")


def _folder(environment: Mapping[str, str], variable: str, default: str) -> Path:
    """A user folder; a relative path is ignored, as specified."""
    asked = Path(environment.get(variable, ""))
    return asked if asked.is_absolute() else Path.home() / default


if __name__ == "__main__":
    sys.exit(main())
