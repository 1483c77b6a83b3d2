"""What tests of loads look for and wait for."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil
import pytest

from pytest_ldos.load.stress_ng import stress_ng_available

needs_stress_ng = pytest.mark.skipif(not stress_ng_available().ok, reason=stress_ng_available().reason or "available")


def running(prefix: str = "stress-ng") -> list[psutil.Process]:
    """Descendants of ours by name; one whose parent died is a zombie until the first process of the system reaps it."""
    return [
        process
        for process in psutil.Process().children(recursive=True)
        if process.name().startswith(prefix) and process.status() != psutil.STATUS_ZOMBIE
    ]


def wait_until(condition: Callable[[], object], timeout_s: float = 15.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
