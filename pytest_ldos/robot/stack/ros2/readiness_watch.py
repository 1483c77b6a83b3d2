"""Waiting for a stack to become ready, through a process that queries it (see `readiness_node`)."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pytest_ldos.host.logs import quoted
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StimulusKind

_END_S: Final = 5.0
_NODE: Final = "pytest_ldos.robot.stack.ros2.readiness_node"


def needs_of(spec: StackSpec) -> dict[str, Any]:
    """Returns what must be there before a stack's stimulus can begin: fields of `Readiness`."""
    is_arm = spec.stimulus is StimulusKind.MOVE_GROUP
    actions = {StimulusKind.MOVE_GROUP: spec.ros2.action, StimulusKind.ACTION: spec.stimuli.action.name}
    services = [f"service:{spec.stimuli.service.name}"] if spec.stimulus is StimulusKind.SERVICE else []
    return {
        "controllers": spec.ros2.controllers,
        "controller_manager": spec.ros2.controller_manager,
        "action": actions.get(spec.stimulus, ""),
        "joint_states": spec.ros2.joint_states if is_arm else "",
        "group": spec.ros2.group if is_arm else "",
        "others": [*services, *spec.ros2.ready],
    }


class ReadinessWatch:
    """Runs the readiness node, which ends by itself when the stack is ready.

    Its farewell to the other participants takes a third of a second, in which the stack can warm up; `await_end`
    comes before what is measured.
    """

    def __init__(
        self, spec: StackSpec, *, needs_clock: bool, environment: Mapping[str, str], log_directory: Path
    ) -> None:
        self._group = ProcessGroup(log_directory=log_directory, environment=environment, death_signal=signal.SIGINT)
        self._asked = {**needs_of(spec), "needs_clock": needs_clock}
        self._missing = ["no answer yet"]
        self._wrong = ""

    def __enter__(self) -> Self:
        self._child = self._group.start("readiness", [sys.executable, "-m", _NODE, json.dumps(self._asked)], talk=True)
        threading.Thread(target=self._read, name="readiness", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._group.stop()

    def _read(self) -> None:
        assert self._child.process.stdout is not None
        for line in self._child.process.stdout:
            self._take(line)

    def _take(self, line: str) -> None:
        try:
            word = json.loads(line)
        except ValueError:
            word = f"the readiness node said what is no word of it: {quoted(line)}"
        if isinstance(word, str):
            self._wrong = word
        else:
            self._missing = word

    def await_end(self) -> None:
        """Waits for the node's end; ends it if it takes long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.process.wait(_END_S)
        self._group.stop()

    @property
    def is_ready(self) -> bool:
        return not self._missing

    @property
    def missing(self) -> str:
        """The missing parts, in words."""
        return "; ".join(self._missing)

    def what_failed(self) -> str:
        """Returns why readiness can no longer be determined or reached; empty while it can."""
        code = self._child.exit_code
        if self._wrong:
            return self._wrong
        return "" if code in {None, 0} else f"{self._child.describe_end()}\n{self._child.last_lines()}"
