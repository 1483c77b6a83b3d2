"""The machine's lock: one measuring session at a time.

The lock is an abstract Unix socket that we listen on. It belongs to the machine (its
network namespace), needs no file, ends with its holder, and tells a client which
process holds it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import psutil

from pytest_ldos.base.errors import ConfigurationError, MachineBusy

LOCK_VARIABLE: Final = "LDOS_LOCK"
"""Environment variable that names another lock; for tests of this project."""

_DEFAULT_NAME: Final = "ldos-measuring"
_CREDENTIALS: Final = struct.Struct("3i")


@contextmanager
def measuring_lock(*, on_waiting: Callable[[str], None] | None = None) -> Iterator[None]:
    """Holds the machine for as long as the context lasts.

    Args:
        on_waiting: called with the holder; then waits for its end, without a limit.

    Raises:
        MachineBusy: another process holds it and `on_waiting` is not given; the message names the process.
        ConfigurationError: the name in `LOCK_VARIABLE` is impossible.
    """
    name = f"\0{os.environ.get(LOCK_VARIABLE, _DEFAULT_NAME)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
        while not _bind(holder, name):
            if on_waiting is None:
                raise MachineBusy(
                    f"another measuring session holds this machine: {_describe_holder(name)}",
                    remedy="wait until it ends; two at once would disturb each other",
                )
            on_waiting(_describe_holder(name))
            _await_end(name)
        holder.listen()
        yield


def _bind(holder: socket.socket, name: str) -> bool:
    try:
        holder.bind(name)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise ConfigurationError(
            f"{LOCK_VARIABLE} cannot name a lock: {error}", remedy="choose a name of fewer than a hundred letters"
        ) from None
    return True


def _await_end(name: str) -> None:
    """Returns when the holder has released the lock: it answers no connection, but its end breaks it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waiting, contextlib.suppress(OSError):
        waiting.connect(name)
        waiting.recv(1)


def find_holder() -> int | None:
    """Pid of the process that measures on this machine now; ``None`` if none does."""
    return _ask_holder(f"\0{os.environ.get(LOCK_VARIABLE, _DEFAULT_NAME)}")


def _ask_holder(name: str) -> int | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(name)
        except OSError:
            return None
        pid, _, _ = _CREDENTIALS.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        return int(pid)


def _describe_holder(name: str) -> str:
    pid = _ask_holder(name)
    if pid is None:
        return "it is just ending"
    try:
        process = psutil.Process(pid)
        return f"pid {pid} of user {process.username()}, in {process.cwd()}: {' '.join(process.cmdline())}"
    except psutil.Error:
        return f"pid {pid}"
