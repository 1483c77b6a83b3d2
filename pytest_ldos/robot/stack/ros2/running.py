"""The backend for ROS 2 nodes that run already: nothing is launched, isolated or ended."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

import psutil

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.robot.stack.ros2.backend import Members, Ros2Backend, Ros2Stack
from pytest_ldos.robot.stack.ros2.installed import Isolation, rmw_of, ros2_available
from pytest_ldos.robot.stack.ros2.state import LaunchFailed, ProcessBegan, to_line
from pytest_ldos.robot.stack.ros2.stimuli import demand_plantable, plan_stimulus

_POLL_S: Final = 0.2


class RunningTree:
    """Processes that run already, and are missed if one ends; `events` are lines of `state`."""

    def __init__(self, processes: Mapping[int, str]) -> None:
        try:
            self._processes = {pid: (name, psutil.Process(pid)) for pid, name in processes.items()}
        except psutil.NoSuchProcess as error:
            raise BringUpFailed(f"{processes[error.pid]} (pid {error.pid}) ended before it was measured") from None
        self._is_left = threading.Event()

    def pids(self) -> Collection[int]:
        return self._processes.keys()

    @property
    def events(self) -> Iterator[str]:
        for pid, (name, _) in self._processes.items():
            yield to_line(ProcessBegan(name, pid))
        processes = [process for _, process in self._processes.values()]
        while not self._is_left.wait(_POLL_S):
            ended = [process.pid for process in processes if not process.is_running()]
            for pid in ended:
                yield to_line(LaunchFailed(f"{self._processes[pid][0]} (pid {pid}) ended while it was measured"))
            processes = [process for process in processes if process.pid not in ended]

    def leave(self) -> None:
        self._is_left.set()


class RunningBackend(Ros2Backend):
    """See `StackBackend`; its processes are those that are recorded."""

    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> Ros2Stack:
        ros2_available(self._spec).demand()
        demand_plantable(self._spec)
        plan = plan_stimulus(self._spec)
        own = {
            "ROS_DOMAIN_ID": os.environ.get("ROS_DOMAIN_ID", "0"),
            "RMW_IMPLEMENTATION": rmw_of(self._spec.ros2),
            "ROS_LOG_DIR": str(self._logs / "ros"),
            # Standard output is reserved for messages between our own processes.
            "RCUTILS_LOGGING_USE_STDOUT": "0",
            "PYTHONUNBUFFERED": "1",
        }
        tree = RunningTree(self._recorder.processes)
        self._resources.callback(tree.leave)
        group = ProcessGroup(log_directory=self._logs, environment=own, death_signal=signal.SIGINT)
        stack = self._assemble(plan, group, Isolation(own), Members(tree.pids, tree.events))
        stack.become_ready(self._resources, on_waiting)
        return stack
