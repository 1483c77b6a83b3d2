"""Sessions of the real LTTng, in a recorder's own daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pytest_ldos.record.lttng import LttngRecorder

EMIT = """
import sys
from pytest_ldos.robot.dds.emission import emit
for step in range(int(sys.argv[1]), int(sys.argv[2])):
    emit.sim_step(step, step * 1000)
"""


class Session:
    """A session of its own in a recorder's daemon."""

    def __init__(self, recorder: LttngRecorder, directory: Path) -> None:
        self._recorder = recorder
        self.directory = directory
        self._environment = {**os.environ, **recorder.environment}

    def lttng(self, *arguments: str) -> None:
        command = [*self._recorder.prefix, "lttng", "--no-sessiond", *arguments]
        subprocess.run(command, env=self._environment, check=True, capture_output=True, timeout=60)

    def create(
        self,
        *channel: str,
        buffers: str = "--buffers-uid",
        output: tuple[str, ...] = (),
        events: str = "ldos:sim_step",
        contexts: tuple[str, ...] = ("vpid", "vtid", "procname"),
    ) -> None:
        where = [f"--output={self.directory}"] if not output else list(output)
        self.lttng("create", "wanted", *where)
        self.lttng("enable-channel", "-u", "-s", "wanted", buffers, *channel, "c")
        self.lttng("enable-event", "-u", "-s", "wanted", "-c", "c", events)
        types = [word for context in contexts for word in ("-t", context)]
        self.lttng("add-context", "-u", "-s", "wanted", "-c", "c", *types)
        self.lttng("start", "wanted")

    def emit(self, first: int, behind: int) -> None:
        self.run(sys.executable, "-c", EMIT, str(first), str(behind))

    def run(self, *command: str) -> None:
        """Runs a program that the session sees."""
        subprocess.run([*self._recorder.prefix, *command], env=self._environment, check=True)

    def stop(self) -> None:
        self.lttng("stop", "wanted")
