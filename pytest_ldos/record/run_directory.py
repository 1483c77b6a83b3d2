"""Runs a program with a private `/run/lttng`: a separate file system in a separate mount namespace.

    python -m pytest_ldos.record.run_directory PROGRAM [ARGUMENT…]

`unshare(1)` is not sufficient if the root directory is no mount point (a chroot): nothing below it can be made
private from inside, so that the mount would propagate to the original namespace. This program enters the new
namespace again, which leads to its real root, makes it private, and returns.

Reference: mount_namespaces(7), setns(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path
from typing import Final, NoReturn

RUN_DIRECTORY: Final = "/run/lttng"  # run directory of root's LTTng session daemon
COMMAND: Final = (sys.executable, "-m", "pytest_ldos.record.run_directory")  # command prefix of the program to run

_CLONE_NEWNS: Final = 0x00020000
_MS_NOSUID: Final = 0x2
_MS_NODEV: Final = 0x4
_MS_REC: Final = 0x4000
_MS_PRIVATE: Final = 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)


def enter_private_run_directory() -> None:
    """Moves this process to a new mount namespace with an empty, private `RUN_DIRECTORY`; needs CAP_SYS_ADMIN."""
    Path(RUN_DIRECTORY).mkdir(mode=0o755, exist_ok=True)
    _check(_libc.unshare(_CLONE_NEWNS), "make a mount namespace")
    try:
        _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        _make_all_private_from_the_real_root()
    _mount("tmpfs", RUN_DIRECTORY, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755")


def _make_all_private_from_the_real_root() -> None:
    root, here = (os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in ("/", "."))
    namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY)
    try:
        _check(_libc.setns(namespace, _CLONE_NEWNS), "enter the mount namespace")
        _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
        os.fchdir(root)
        os.chroot(".")
        os.fchdir(here)
    finally:
        for descriptor in (namespace, here, root):
            os.close(descriptor)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [word.encode() if word is not None else None for word in (source, target, kind, data)]
    _check(_libc.mount(*words[:3], flags, words[3]), f"mount {source} on {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot {what}: {os.strerror(number)}")


def main(command: list[str]) -> NoReturn:
    try:
        enter_private_run_directory()
    except OSError as error:
        raise SystemExit(str(error)) from None
    os.execvp(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
