"""Ends a process that is not our child: that one and no other."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from dataclasses import dataclass
from typing import Final

import psutil

from pytest_ldos.base.errors import MendFailed
from pytest_ldos.doctor.changes import ChangeLog
from pytest_ldos.doctor.machine import Machine, ProcessFacts

PATIENCE_S: Final = 5.0
"""After each signal. A Gazebo server takes 2.2 s to end by SIGINT."""

_LADDER: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True)
class EndProcess:
    """SIGINT, then SIGTERM, then SIGKILL, until it has ended; see `Fix`."""

    description: str
    process: ProcessFacts
    is_reversible: bool = False

    def apply(self, machine: Machine, changes: ChangeLog) -> None:
        end_process(self.process)


def end_process(process: ProcessFacts, *, patience_s: float = PATIENCE_S) -> None:
    """Ends a process, unless it has ended and its pid is another's by now.

    The pid is turned into a descriptor first, and only then is the process behind it compared:
    a descriptor never comes to mean another process.

    Raises:
        MendFailed: not permitted, or it survived SIGKILL.

    Reference: pidfd_open(2), pidfd_send_signal(2).
    """
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if _is_the_same(process) and not any(_ends(descriptor, number, patience_s) for number in _LADDER):
            raise MendFailed(f"process {process.pid} survived SIGKILL", remedy="it waits in the kernel; restart")
    except PermissionError:
        raise MendFailed(f"process {process.pid} belongs to somebody else", remedy=f"sudo kill {process.pid}") from None
    finally:
        os.close(descriptor)


def _is_the_same(process: ProcessFacts) -> bool:
    try:
        return psutil.Process(process.pid).create_time() == process.created
    except psutil.NoSuchProcess:
        return False


def _ends(descriptor: int, number: signal.Signals, patience_s: float) -> bool:
    """Whether the process ends in time; its descriptor can be read when it has."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, number)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(patience_s * 1000))
