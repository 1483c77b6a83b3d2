"""A process that runs `launch` with a launch file, and reports its events on standard output as JSON lines (`state`).

The output of each launched process goes to its own log file; the output of launch itself goes to standard error.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TextIO

from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription, RegisterEventHandler
from launch.event_handlers import OnProcessExit, OnProcessIO, OnProcessStart
from launch.events.process import ProcessExited, ProcessIO, ProcessStarted
from launch.launch_description_sources import AnyLaunchDescriptionSource
from launch.logging import get_logger

from pytest_ldos.robot.stack.ros2.state import LaunchFailed, ProcessBegan, ProcessEnded, to_line

_PREAMBLE: Final = "Caught exception in launch (see debug for traceback): "


class Reporter(logging.Handler):
    def __init__(self, events: TextIO, log_directory: Path) -> None:
        super().__init__(logging.ERROR)
        self._events = events
        self._log_directory = log_directory
        self.failure = ""

    def started(self, event: ProcessStarted, context: Any) -> None:
        self._say(ProcessBegan(event.process_name, event.pid))

    def ended(self, event: ProcessExited, context: Any) -> None:
        self._say(ProcessEnded(event.process_name, event.pid, event.returncode))

    def printed(self, event: ProcessIO) -> None:
        with (self._log_directory / f"{event.process_name}.log").open("ab") as log:
            log.write(event.text)

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps launch's first error, which is the reason if the launch fails."""
        self.failure = self.failure or record.getMessage().removeprefix(_PREAMBLE)

    def failed(self) -> None:
        self._say(LaunchFailed(self.failure or "launch ended with an error"))

    def _say(self, event: ProcessBegan | ProcessEnded | LaunchFailed) -> None:
        self._events.write(to_line(event))
        self._events.flush()


def describe(file: str, arguments: Iterable[tuple[str, str]], reporter: Reporter) -> LaunchDescription:
    return LaunchDescription(
        [
            RegisterEventHandler(OnProcessStart(on_start=reporter.started)),
            RegisterEventHandler(OnProcessExit(on_exit=reporter.ended)),
            RegisterEventHandler(OnProcessIO(on_stdout=reporter.printed, on_stderr=reporter.printed)),
            IncludeLaunchDescription(AnyLaunchDescriptionSource(file), launch_arguments=list(arguments)),
        ]
    )


def main() -> int:
    """Runs the launch file of ``argv[1]``: JSON with ``file``, ``arguments`` and ``log_directory``."""
    settings = json.loads(sys.argv[1])
    events = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    reporter = Reporter(events, Path(settings["log_directory"]))
    get_logger("launch").addHandler(reporter)
    service = LaunchService(noninteractive=True)
    service.include_launch_description(describe(settings["file"], settings["arguments"].items(), reporter))
    code: int = service.run()
    if code != 0:
        reporter.failed()
    return code


if __name__ == "__main__":
    sys.exit(main())
