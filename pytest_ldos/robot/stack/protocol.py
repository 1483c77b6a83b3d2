"""The common interface of all stacks under test, and the software that their processes are started from."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from pytest_ldos.base.stats.moments import Moments
from pytest_ldos.robot.stack.stimulus.protocol import Stimulus
from pytest_ldos.scenario.words import StackKind


@dataclass(frozen=True)
class StackInfo:
    """Description of a running stack, for headers and records.

    Attributes:
        name: name of its folder of baselines, such as ``ros2-gz``.
        description: text for people that names the parts.
        rmw: the middleware, as part of the host class.
        versions: versions of the relevant software, by name.
        has_simulated_clock: True if its nodes take the time from a topic.
    """

    name: str
    description: str
    rmw: str
    versions: Mapping[str, str]
    kind: StackKind = StackKind.EMBEDDED
    has_simulated_clock: bool = False


class RunningStack(Protocol):
    """A stack that can be made to work.

    Attributes:
        domain: DDS domain of its processes.
        environment: variables for other processes that are to use its domain and its middleware.
    """

    info: StackInfo
    domain: int
    environment: Mapping[str, str]

    @property
    def stimulus(self) -> Stimulus:
        """The way in which it is made to work."""

    def pids(self) -> list[int]:
        """Returns the stack's processes, which may appear in its trace."""

    def processes(self) -> Mapping[int, str]:
        """Names of the processes under test that run now, by pid; what makes them work is none of them."""

    def all_processes(self) -> Mapping[int, str]:
        """The same with those that have ended."""

    def loop_statistics(self) -> Mapping[str, Moments]:
        """Statistics of a controller manager's loops since they were activated, by its names; empty without one.

        Raises:
            Unavailable: its messages are not installed.
            BringUpFailed: the process that listens to it ended.
        """

    def settle(self) -> None:
        """Waits until nothing that helped it to start runs any more. Called after warm-up, before the first trial."""


class StackBackend(Protocol):
    """Starts and ends a stack."""

    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> RunningStack:
        """Starts the stack and returns when it accepts goals.

        Args:
            on_waiting: called every few seconds with the parts that are missing, if the backend knows them.

        Raises:
            BringUpFailed: the stack did not become ready; has the last lines of each process.
        """

    def stop(self) -> None:
        """Ends every process. May be called at any time, and repeatedly."""


@dataclass(frozen=True)
class Installation:
    """An installed version of the stack.

    Attributes:
        python: interpreter of the embedded stack's processes.
        environment: variables of a sourced ROS 2 workspace, which replace ours of the same names;
            ``None`` for ours.
        launch_file: replaces the launch file that the settings name by its path; empty for that one.
    """

    python: str = sys.executable
    environment: Mapping[str, str] | None = None
    launch_file: str = ""

    @property
    def is_ours(self) -> bool:
        return self == OURS

    @property
    def interpreter(self) -> tuple[str, ...]:
        """The command that runs Python.

        Another environment's interpreter runs isolated, so that neither ``PYTHONPATH`` nor the
        current folder can make it import our own sources.
        """
        return (self.python,) if self.python == sys.executable else (self.python, "-I")


OURS: Final = Installation()
"""The environment of this process."""
