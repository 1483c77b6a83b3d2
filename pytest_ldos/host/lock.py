"""One measuring session on a machine at a time.

The lock is an abstract Unix socket that we listen on: it belongs to the machine (its
network namespace), needs no file, ends with its holder, and tells whoever connects which
process holds it.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psutil

from pytest_ldos.errors import MachineBusy

LOCK_VARIABLE: Final = "LDOS_LOCK"
"""Environment variable that names another lock; for tests of this project."""

_DEFAULT_NAME: Final = "ldos-measuring"
_CREDENTIALS: Final = struct.Struct("3i")


@contextmanager
def measuring_lock() -> Iterator[None]:
    """Holds the machine.

    Raises:
        MachineBusy: another process holds it; names that process.
    """
    name = f"\0{os.environ.get(LOCK_VARIABLE, _DEFAULT_NAME)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as holder:
        try:
            holder.bind(name)
        except OSError:
            raise MachineBusy(
                f"another measuring session holds this machine: {_describe_holder(name)}",
                remedy="wait until it ends; two at once would disturb each other",
            ) from None
        holder.listen()
        yield


def _describe_holder(name: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(name)
        except OSError:
            return "it is just ending"
        pid, _, _ = _CREDENTIALS.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    try:
        process = psutil.Process(pid)
        return f"pid {pid} of user {process.username()}, in {process.cwd()}: {' '.join(process.cmdline())}"
    except psutil.Error:
        return f"pid {pid}"
