"""A program that ends a tree of processes when its owner has ended.

``python -m pytest_ldos.host.keeper MARK PATIENCE_S COMMAND…`` runs a command until its own standard input ends, until
SIGINT or SIGTERM, or until the command ends. Then the command gets SIGINT; after PATIENCE_S seconds, all that remain
get SIGINT, SIGTERM and SIGKILL, PATIENCE_S seconds each. A killed launcher leaves its processes, and one in a session
of its own gets no signal of the group: the keeper adopts orphans, and finds its processes also by `MARK_VARIABLE`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
from typing import Final

import psutil

from pytest_ldos.host.fingerprint import pids_with
from pytest_ldos.host.processes import comes_true

MARK_VARIABLE: Final = "PYTEST_LDOS_TREE"
LADDER: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)

_PR_SET_CHILD_SUBREAPER: Final = 36
_POLL_S: Final = 0.02


def marked_pids(mark: str) -> list[int]:
    return pids_with({MARK_VARIABLE: mark})


class _Keeper:
    def __init__(self, mark: str, patience_s: float, command: list[str]) -> None:
        self._mark = mark
        self._patience_s = patience_s
        self._wakeup, self._signals = os.pipe()
        os.set_blocking(self._signals, False)
        signal.set_wakeup_fd(self._signals)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)  # only against the default action: the wake-up descriptor has it
        environment = {**os.environ, MARK_VARIABLE: mark}
        self._command = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment, process_group=0)

    def run(self) -> int:
        self._await_reason_to_stop()
        self._stop_all()
        code = self._command.poll()
        return 1 if code is None else abs(code)

    def _await_reason_to_stop(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
            selector.register(self._wakeup, selectors.EVENT_READ)
            while self._command.poll() is None:
                for key, _ in selector.select():
                    heard = os.read(key.fd, 64)
                    if not heard or (key.fd == self._wakeup and set(heard) - {signal.SIGCHLD}):
                        return
                self._reap()

    def _stop_all(self) -> None:
        """Signals the command first: a launcher forwards SIGINT, and nodes that get it twice do not clean up."""
        if self._command.poll() is None:
            self._command.send_signal(signal.SIGINT)
            comes_true(lambda: self._command.poll() is not None, limit_s=self._patience_s, poll_s=_POLL_S)
        for number in LADDER:
            for pid in self._running():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            if comes_true(lambda: not self._running(), limit_s=self._patience_s, poll_s=_POLL_S):
                return

    def _running(self) -> set[int]:
        self._reap()
        found = set(marked_pids(self._mark))
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.add(process.pid)
        return found - {os.getpid()}

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                if ended.si_pid == self._command.pid:
                    self._command.poll()
                else:
                    os.waitpid(ended.si_pid, 0)


def main() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")
    return _Keeper(sys.argv[1], float(sys.argv[2]), sys.argv[3:]).run()


if __name__ == "__main__":
    sys.exit(main())
