"""Statistics that a controller manager publishes of its loops, through a process that listens (`statistics_node`)."""

from __future__ import annotations

import json
import os
import selectors
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.base.stats.moments import Moments
from pytest_ldos.host.logs import quoted
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.host.ros import find_ros_packages

_NODE: Final = "pytest_ldos.robot.stack.ros2.statistics_node"
_MESSAGES: Final = "pal_statistics_msgs"
_ANSWER_S: Final = 15.0
"""Time for an answer: the process waits for the manager itself, and imports ROS 2 before the first one."""


class ManagerStatistics:
    """Asks for the statistics that a controller manager keeps of each loop since it was activated.

    Args:
        controller_manager: full name of the manager.

    Raises:
        Unavailable: the messages of these statistics are not installed.
    """

    def __init__(self, controller_manager: str, *, environment: Mapping[str, str], log_directory: Path) -> None:
        find_ros_packages([_MESSAGES], environment={**os.environ, **environment}).demand()
        self._topic = f"{controller_manager}/statistics"
        self._group = ProcessGroup(log_directory=log_directory, environment=environment, death_signal=signal.SIGINT)
        self._child = self._group.start("statistics", [sys.executable, "-m", _NODE, self._topic], talk=True)

    def stop(self) -> None:
        """Ends the process that listens."""
        self._group.stop()

    def look(self) -> Mapping[str, Moments]:
        """The latest statistics by the names that the manager gives them; empty if it publishes none.

        Raises:
            BringUpFailed: the process that listens ended, or gave no answer.
        """
        answer = self._ask()
        try:
            found = json.loads(answer)
        except ValueError:
            said = f": {quoted(answer)}" if answer else ""
            raise BringUpFailed(
                f"the process that listens to {self._topic} gave no answer{said}", details=self._child.last_lines()
            ) from None
        return {} if found is None else {name: Moments(*each) for name, each in found.items()}

    def _ask(self) -> str:
        """The answer to a question; empty if there is none."""
        stdin, stdout = self._child.process.stdin, self._child.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write("\n")
            stdin.flush()
        except OSError:
            return ""
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            return stdout.readline() if selector.select(_ANSWER_S) else ""
