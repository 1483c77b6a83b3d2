"""Processes of a launch: those that launch reported, and those that are still running."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import psutil

from pytest_ldos.host.ends import describe_end
from pytest_ldos.host.inherited import pids_with

_LADDER: Final = ((signal.SIGINT, 2.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))


@dataclass(frozen=True)
class LaunchedProcess:
    """Process that launch started.

    Attributes:
        name: as launch calls it (``talker-1``).
        exit_code: ``None`` while it runs; the negative signal number if a signal ended it.
    """

    name: str
    pid: int
    exit_code: int | None = None

    def describe(self) -> str:
        """``talker-1 ended with exit code 1``."""
        if self.exit_code is None:
            return f"{self.name} is running"
        return describe_end(self.name, self.exit_code)


class ProcessBook:
    """Records launch's events of starting and ending processes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._processes: dict[int, LaunchedProcess] = {}
        self.unrecorded: list[str] = []

    @property
    def processes(self) -> tuple[LaunchedProcess, ...]:
        return tuple(self._processes.values())

    @property
    def is_running(self) -> bool:
        return any(each.exit_code is None for each in self._processes.values())

    def note_start(self, event: Any, context: Any) -> None:
        self._processes[event.pid] = LaunchedProcess(event.process_name, event.pid)
        if not self._environment.items() <= dict(event.env).items():
            self.unrecorded.append(event.process_name)

    def note_exit(self, event: Any, context: Any) -> None:
        self._processes[event.pid] = LaunchedProcess(event.process_name, event.pid, event.returncode)


def end_survivors(environment: Mapping[str, str]) -> list[str]:
    """Ends all processes that were started with these variables; returns their names.

    They remain if launch is killed, or if a process started others in the background. Processes
    that they start while they end are ended, too.

    Raises:
        RuntimeError: a process survived SIGKILL.
    """
    names: dict[psutil.Process, str] = {}
    for number, patience_s in _LADDER:
        survivors = _started_with(environment)
        if not survivors:
            return list(names.values())
        names.update({process: _name_of(process) for process in survivors if process not in names})
        _send(number, survivors)
        psutil.wait_procs(survivors, timeout=patience_s)
    left = _started_with(environment)
    if left:
        raise RuntimeError(f"processes of the launch survived SIGKILL: {', '.join(map(_name_of, left))}")
    return list(names.values())


def _started_with(environment: Mapping[str, str]) -> list[psutil.Process]:
    found = []
    for pid in pids_with(environment):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def _send(number: signal.Signals, processes: list[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _name_of(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return f"{process.name()} ({process.pid})"
    return f"process {process.pid}"
