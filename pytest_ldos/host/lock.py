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

LOCK_VARIABLE: Final = "LDOS_LOCK"  # environment variable with the name of another lock; for tests of this project
_DEFAULT_NAME: Final = "ldos-measuring"
_CREDENTIALS: Final = struct.Struct("3i")
_LONGEST_NAME: Final = 107  # largest length of a socket's name in bytes


@contextmanager
def measuring_lock(
    *, wait_s: float = 0.0, on_waiting: Callable[[str], None] | None = None
) -> Iterator[Callable[[str], None]]:
    """Holds the lock inside the ``with`` block; yields a function that publishes a description of the measurement.

    It waits for other holders to end, for at most `wait_s`; `on_waiting` gets the holder before each wait. Waiting
    processes acquire the lock in any order.

    Raises:
        MachineBusy: another process still holds it; the message names the process.
        ConfigurationError: the name in `LOCK_VARIABLE` is impossible.
    """
    name = _lock_name()
    end = time.monotonic() + wait_s
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder, _Sign() as sign:
        while not _bind(holder, name):
            left_s = end - time.monotonic()
            if left_s <= 0:
                waited = f", after {wait_s:g} s of waiting" if wait_s else ""
                raise MachineBusy(
                    f"another measuring session holds this machine{waited}: {_describe_holder()}",
                    remedy="wait until it ends, here or by --ldos-wait SECONDS (LDOS_WAIT); "
                    "two at once would disturb each other",
                )
            if on_waiting is not None:
                on_waiting(_describe_holder())
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as waiting, contextlib.suppress(OSError):
                waiting.connect(name)
                waiting.settimeout(None if math.isinf(left_s) else left_s)
                waiting.recv(1)  # until the holder's end closes the connection
        holder.listen()
        yield sign.show


def _lock_name() -> str:
    return f"\0{os.environ.get(LOCK_VARIABLE, _DEFAULT_NAME)}"


class _Sign(ExitStack):
    """Socket whose name describes the measurement to all users of the machine."""

    def show(self, what: str) -> None:
        """Replaces the description; a too long one is truncated."""
        self.close()
        text = f"{_sign_prefix(os.getpid())}{one_line(what)}".encode("ascii", "replace")[:_LONGEST_NAME]
        sign = self.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        with contextlib.suppress(OSError):  # informative only; a failure must not end the measurement
            sign.bind(text)


def _sign_prefix(pid: int) -> str:
    return f"{_lock_name()}/{pid}: "


def _read_sign(pid: int) -> str:
    prefix = _sign_prefix(pid).replace("\0", "@")
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/unix").read_text("ascii", "replace").splitlines():
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


def find_holder() -> int | None:
    """Pid of the process that holds the lock, 0 for one outside this PID namespace; ``None`` without one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(_lock_name())
        except OSError:
            return None
        pid, _, _ = _CREDENTIALS.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        return int(pid)


def _describe_holder() -> str:
    pid = find_holder()
    if not pid:
        return "it is just ending" if pid is None else "a process outside this container"
    what = _read_sign(pid)
    measures = f", which measures {what}" if what else ""
    try:
        process = psutil.Process(pid)
        return f"pid {pid} of user {process.username()}{measures}, in {process.cwd()}: {' '.join(process.cmdline())}"
    except psutil.Error:
        return f"pid {pid}{measures}"
