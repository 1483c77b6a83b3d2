"""The machine's lock: one measuring session at a time.

The lock is a listening abstract Unix socket. It belongs to the machine (its network namespace), needs no file, ends
with its holder, and identifies the holder to clients. The name of a second socket describes the measurement.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import psutil

from pytest_ldos.base.errors import ConfigurationError, MachineBusy
from pytest_ldos.base.text import one_line

LOCK_VARIABLE: Final = "LDOS_LOCK"
"""Environment variable with the name of another lock; for tests of this project."""

_DEFAULT_NAME: Final = "ldos-measuring"
_CREDENTIALS: Final = struct.Struct("3i")
_LONGEST_NAME: Final = 107  # largest length of a socket's name in bytes
_SOCKETS: Final = Path("/proc/net/unix")


@contextmanager
def measuring_lock(
    *, wait_s: float = 0.0, on_waiting: Callable[[str], None] | None = None
) -> Iterator[Callable[[str], None]]:
    """Holds the lock inside the ``with`` block; yields a function that publishes a description of the measurement.

    Waiting processes acquire the lock in any order.

    Args:
        wait_s: longest time to wait for other holders to end, seconds.
        on_waiting: called with the holder before each wait.

    Raises:
        MachineBusy: another process still holds it; the message names the process.
        ConfigurationError: the name in `LOCK_VARIABLE` is impossible.
    """
    name = f"\0{os.environ.get(LOCK_VARIABLE, _DEFAULT_NAME)}"
    end = time.monotonic() + wait_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder, _Sign(name) as sign:
        while not _bind(holder, name):
            left_s = end - time.monotonic()
            if left_s <= 0:
                waited = f", after {wait_s:g} s of waiting" if wait_s else ""
                raise MachineBusy(
                    f"another measuring session holds this machine{waited}: {_describe_holder(name)}",
                    remedy="wait until it ends, here or by --ldos-wait (LDOS_WAIT); "
                    "two at once would disturb each other",
                )
            if on_waiting is not None:
                on_waiting(_describe_holder(name))
            _await_end(name, left_s)
        holder.listen()
        yield sign.show


class _Sign(ExitStack):
    """Socket whose name describes the measurement to all users of the machine."""

    def __init__(self, lock: str) -> None:
        super().__init__()
        self._prefix = _sign_prefix(lock, os.getpid())

    def show(self, what: str) -> None:
        """Replaces the description; a too long one is truncated."""
        self.close()
        text = f"{self._prefix}{one_line(what)}".encode("ascii", "replace")[:_LONGEST_NAME]
        sign = self.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        with contextlib.suppress(OSError):  # informative only; a failure must not end the measurement
            sign.bind(text)


def _sign_prefix(lock: str, pid: int) -> str:
    return f"{lock}/{pid}: "


def _read_sign(lock: str, pid: int) -> str:
    """Reads the holder's description; empty without one."""
    prefix = _sign_prefix(lock, pid).replace("\0", "@")
    with contextlib.suppress(OSError):
        for line in _SOCKETS.read_text("ascii", "replace").splitlines():
            _, found, what = line.partition(prefix)
            if found:
                return one_line(what)
    return ""


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


def _await_end(name: str, limit_s: float) -> None:
    """Waits until the holder's end closes a connection to its socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waiting, contextlib.suppress(OSError):
        waiting.connect(name)
        waiting.settimeout(None if math.isinf(limit_s) else limit_s)
        waiting.recv(1)


def find_holder() -> int | None:
    """Pid of the process that holds the lock; ``None`` without one."""
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
    what = _read_sign(name, pid)
    measures = f", which measures {what}" if what else ""
    try:
        process = psutil.Process(pid)
        return f"pid {pid} of user {process.username()}{measures}, in {process.cwd()}: {' '.join(process.cmdline())}"
    except psutil.Error:
        return f"pid {pid}{measures}"
