"""Undoes changes of this machine, even if this process is killed (see `undoer`).

An action is registered before its change is made::

    with undone_at_end(log) as undo:
        undo.register(RunCommand(("tc", "qdisc", "del", "dev", "lo", "root")))
        subprocess.run(["tc", "qdisc", "add", …])
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_ldos.base.errors import MendFailed
from pytest_ldos.base.writable import opened_log
from pytest_ldos.host.undo_actions import UndoAction, action_to_dict, undo_all
from pytest_ldos.host.undoer import REGISTERED, UNDO


class Undo:
    """Registered actions, and the process that executes them.

    The process has its own session, so that neither Ctrl-C nor the end of the process group ends it.

    Args:
        log: file with a line per failed action.
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
        """Pid of the executing process."""
        return self._process.pid

    def register(self, action: UndoAction) -> None:
        """Registers an action; after the return, it is executed in any case and the change may be made.

        Raises:
            MendFailed: the executing process has ended.
        """
        if self._ask(action_to_dict(action)) != REGISTERED:
            raise MendFailed(
                "the process that undoes what is changed on this machine has ended",
                remedy="nothing was changed; run it again, and look at what ends processes here",
            )
        self._actions.append(action)

    def undo(self) -> None:
        """Undoes everything, the last change first. Further calls do nothing.

        Raises:
            MendFailed: some change could not be undone; all others were.
        """
        actions, self._actions = self._actions, []
        answer = self._ask(dict(UNDO))
        while answer == REGISTERED:  # answer to an interrupted `register`
            answer = self._hear()
        self._close()
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

    def _close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@contextmanager
def undone_at_end(log: Path) -> Iterator[Undo]:
    """Executes the registered actions at the end of the ``with`` block.

    Raises:
        MendFailed: some change could not be undone.
    """
    undo = Undo(log)
    try:
        yield undo
    finally:
        undo.undo()
