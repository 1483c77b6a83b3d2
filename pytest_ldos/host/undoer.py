"""A program that undoes changes of this machine when their owner has ended.

``python -m pytest_ldos.host.undoer OWNER_PID`` reads actions from its standard input, one JSON object a line, and
answers each with ``registered``. On request (``{"undo": true}``), at the end of standard input, at the owner's death
or on SIGTERM, it executes all of them, the last first, prints a JSON list of the failures, and exits.

It also polls a descriptor of the owner, because a forked child of the owner may still hold the pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import sys
from typing import Final

from pytest_ldos.host.undo_actions import UndoAction, action_from_dict, undo_all

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
        signal.signal(signal.SIGTERM, _noted)
        self._owner = _open_owner(owner)

    def run(self) -> int:
        self._await_reason()
        failures = undo_all(self._actions)
        for failure in failures:
            sys.stderr.write(f"could not be undone: {failure}\n")
        _say(json.dumps(failures))
        return 1 if failures else 0

    def _await_reason(self) -> None:
        if self._owner is None:
            return
        with selectors.DefaultSelector() as selector:
            for descriptor in (sys.stdin.fileno(), self._owner, self._wakeup):
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                # Pending registrations are read first, because their changes may have been made.
                if sys.stdin.fileno() in ready and self._should_end():
                    return
                if ready - {sys.stdin.fileno()}:
                    return

    def _should_end(self) -> bool:
        """Reads from the owner; True if it requests undoing, or has ended."""
        heard = os.read(sys.stdin.fileno(), _CHUNK)
        *lines, self._unread = (self._unread + heard).split(b"\n")
        for line in lines:
            values = json.loads(line)
            if values == UNDO:
                return True
            self._actions.append(action_from_dict(values))
            _say(REGISTERED)
        return not heard


def _open_owner(pid: int) -> int | None:
    """A descriptor that becomes readable when the owner ends; ``None`` if it has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    return descriptor if os.getppid() == pid else None


def _say(line: str) -> None:
    """Prints a line, even if the owner has ended."""
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), f"{line}\n".encode())


def _noted(number: int, frame: object) -> None:
    """Does nothing: the wake-up descriptor has the signal, and a handler prevents the default action."""


def main() -> int:
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    return _Undoer(int(sys.argv[1])).run()


if __name__ == "__main__":
    sys.exit(main())
