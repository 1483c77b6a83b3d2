"""Changes of this machine that are undone, temporary folders, clean termination by SIGTERM, and user folders.

An action is registered before its change is made::

    with undone_at_end(log) as undo:
        undo.register(RunCommand(("tc", "qdisc", "del", "dev", "lo", "root")))
        subprocess.run(["tc", "qdisc", "add", …])
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from pytest_ldos.base.errors import MendFailed, NotWritten
from pytest_ldos.base.files import opened_log, writing
from pytest_ldos.host.undoer import REGISTERED, UNDO, RemoveTree, UndoAction, action_to_dict, undo_all


class Undo:
    """Registered actions, and the process that executes them; `log` gets a line per failed action.

    The process has its own session, so that neither Ctrl-C nor the end of the process group ends it.
    """

    def __init__(self, log: Path) -> None:
        self._actions: list[UndoAction] = []
        with opened_log(log) as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pytest_ldos.host.undoer", str(os.getpid())],
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
        if self._ask(action_to_dict(action)) != REGISTERED:
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
