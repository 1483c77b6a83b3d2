"""Ends a process that is not our child, and never another one with its pid."""

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
"""Wait after each signal. A Gazebo server takes 2.2 s from SIGINT to its end."""

_LADDER: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True)
class EndProcess:
    """Ends a process by SIGINT, SIGTERM, then SIGKILL; see `Fix`."""

    description: str
    process: ProcessFacts
    is_reversible: bool = False

    def apply(self, machine: Machine, changes: ChangeLog) -> None:
        end_process(self.process)


def end_process(process: ProcessFacts, *, patience_s: float = PATIENCE_S) -> None:
    """Ends a process; does nothing if it has ended, also if another process has its pid by now.

    Opens a descriptor of the pid first, and compares the process behind it then: a descriptor
    never refers to another process later.

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
    """True if the process ends in time after the signal; its descriptor is then readable."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, number)
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(patience_s * 1000))
