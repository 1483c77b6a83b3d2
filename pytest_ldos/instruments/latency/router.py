"""iceoryx's router, which shared memory over iceoryx needs."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.instruments.latency.cyclone import ROUTER

_READY: Final = "RouDi is ready for clients"
_THERE_ALREADY: Final = "still running"
_SEGMENT: Final = re.compile(
    r"Reserving \d+ bytes in the shared memory \[([\w.-]+)\]\s+\[ Reserving shared memory successful \]"
)
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the kernel's path
_TIMEOUT_S: Final = 10.0
_LOOK_S: Final = 0.05


@contextmanager
def running_router(folder: Path) -> Iterator[None]:
    """Runs a router within the context: our own, unless one runs on this machine already.

    Raises:
        Unavailable: it does not start.
    """
    group = ProcessGroup(log_directory=folder)
    try:
        router = group.start(ROUTER, [ROUTER])
        _await_ready(router)
        yield
    finally:
        group.stop()
        _remove_segments(router)


def _remove_segments(router: Child) -> None:
    """Removes what a router leaves if it fails to end cleanly, as after a process was killed while sharing memory."""
    if router.exit_code == 0:
        return
    for name in _SEGMENT.findall(router.log.read_text("utf-8", errors="replace")):
        (_MEMORY / name).unlink(missing_ok=True)


def _await_ready(router: Child) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            router.process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            if _READY in router.log.read_text("utf-8", errors="replace"):
                return
            continue
        if _THERE_ALREADY in router.log.read_text("utf-8", errors="replace"):
            return
        raise Unavailable(f"{router.describe_end()}: {router.last_lines()}", remedy=f"see whether {ROUTER} starts")
    raise Unavailable(f"{ROUTER} was not ready within {_TIMEOUT_S:g} s", remedy=f"see whether {ROUTER} starts")
