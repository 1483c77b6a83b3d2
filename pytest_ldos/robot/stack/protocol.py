"""The common interface of all stacks under test, and installed versions of a stack."""

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
        name: name of its baselines' folder, such as ``ros2-gz``.
        description: text that names the parts.
        rmw: the middleware, as part of the host class.
        versions: versions of the relevant software, by name.
        has_simulated_clock: True if its nodes take time from a topic.
        starts_afresh: True if each start begins in the same state, as a simulation does; hardware stays where it is.
    """

    name: str
    description: str
    rmw: str
    versions: Mapping[str, str]
    kind: StackKind = StackKind.EMBEDDED
    has_simulated_clock: bool = False
    starts_afresh: bool = True


class RunningStack(Protocol):
    """A running stack.

    Attributes:
        domain: DDS domain of its processes.
        environment: variables for other processes that use its domain and middleware.
    """

    info: StackInfo
    domain: int
    environment: Mapping[str, str]

    @property
    def stimulus(self) -> Stimulus:
        """The stimulus that makes it work."""

    def pids(self) -> list[int]:
        """Returns pids of the stack's processes, which may appear in its trace."""

    def processes(self) -> Mapping[int, str]:
        """Names of the running processes under test, by pid, without those of the stimulus."""

    def all_processes(self) -> Mapping[int, str]:
        """Names of all processes under test, by pid, including those that have ended."""

    def loop_statistics(self) -> Mapping[str, Moments]:
        """Statistics of a controller manager's loops since their activation, by name; empty without a manager.

        Raises:
            Unavailable: its messages are not installed.
            BringUpFailed: the process that listens to it ended.
        """

    def settle(self) -> None:
        """Waits until all start-up helpers have ended. Called after warm-up, before the first trial."""


class StackBackend(Protocol):
    """Starts and ends a stack."""

    def start(self, *, on_waiting: Callable[[str], None] | None = None) -> RunningStack:
        """Starts the stack and returns when it accepts goals.

        Args:
            on_waiting: called every few seconds with the missing parts, if the backend knows them.

        Raises:
            BringUpFailed: the stack did not become ready; includes the last lines of each process.
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
        launch_file: replaces the launch file in the settings; empty for that one.
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

        Another environment's interpreter runs isolated, so that it does not import our sources from ``PYTHONPATH`` or
        the current folder.
        """
        return (self.python,) if self.python == sys.executable else (self.python, "-I")


OURS: Final = Installation()
"""The environment of this process."""
