"""Processes and conditions that tests of loads look for and wait for."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import psutil


def running(prefix: str = "stress-ng") -> list[psutil.Process]:
    """Descendants of ours by name; one whose parent died is a zombie until the first process of the system reaps it."""
    return [process for process in psutil.Process().children(recursive=True) if _runs_as(process, prefix)]


def _runs_as(process: psutil.Process, prefix: str) -> bool:
    try:
        return process.name().startswith(prefix) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended since it was listed
        return False


def wait_until(condition: Callable[[], object], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


@contextmanager
def owner_of(load: AbstractContextManager[object]) -> Iterator[int]:
    """Pid of a forked process that applies a load; it is there to be killed, and is killed in the end."""
    reading, writing = os.pipe()
    owner = os.fork()
    if owner == 0:
        gc.disable()  # it would wait for threads of the middleware, which a fork does not have
        try:
            with load:
                os.write(writing, b"applied")
                signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    try:
        assert os.read(reading, 7) == b"applied", "its load could not be applied"
        yield owner
    finally:
        os.close(reading)
        os.kill(owner, signal.SIGKILL)
        os.waitpid(owner, 0)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def is_in_memory(folder: Path) -> bool:
    """True if files there do not reach storage."""
    mounts = {Path(each.mountpoint): each.fstype for each in psutil.disk_partitions(all=True)}
    nearest = next(each for each in (folder, *folder.parents) if each in mounts)
    return mounts[nearest] in ("tmpfs", "ramfs")
