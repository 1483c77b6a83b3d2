"""Statistics of a controller manager's loops, through a process that subscribes to them (`statistics_node`)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.base.stats.moments import Moments
from pytest_ldos.host.kept import AnsweringChild, ChildFailed
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.host.ros import find_ros_packages

_NODE: Final = "pytest_ldos.robot.stack.ros2.statistics_node"
_MESSAGES: Final = "pal_statistics_msgs"
_ANSWER_S: Final = 15.0
"""Timeout of an answer: before the first one, the process imports ROS 2 and waits for the manager."""


class ManagerStatistics:
    """Requests a controller manager's statistics of each loop since its activation.

    Args:
        controller_manager: full name of the manager.

    Raises:
        Unavailable: the statistics' message types are not installed.
    """

    def __init__(self, controller_manager: str, *, environment: Mapping[str, str], log_directory: Path) -> None:
        find_ros_packages([_MESSAGES], environment={**os.environ, **environment}).demand()
        self._topic = f"{controller_manager}/statistics"
        self._group = ProcessGroup(log_directory=log_directory, environment=environment, death_signal=signal.SIGINT)
        child = self._group.start("statistics", [sys.executable, "-m", _NODE, self._topic], talk=True)
        self._listener = AnsweringChild(child)

    def stop(self) -> None:
        """Ends the listening process."""
        self._group.stop()

    def look(self) -> Mapping[str, Moments]:
        """The latest statistics by the manager's names; empty if it publishes none.

        Raises:
            BringUpFailed: the listening process ended, or did not answer.
        """
        try:
            found = self._listener.ask("", limit_s=_ANSWER_S)
        except ChildFailed as error:
            raise BringUpFailed(f"{self._topic}: {error.message}", details=error.details) from None
        return {name: Moments(*each) for name, each in found.items()}
