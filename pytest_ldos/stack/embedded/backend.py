"""Starts the embedded stack: four processes on a DDS domain of their own."""

from __future__ import annotations

import importlib.util
import json
import platform
import queue
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pytest_ldos.dds.domain import claim_domain
from pytest_ldos.errors import BringUpFailed, ConfigurationError
from pytest_ldos.host.availability import Availability, find_modules
from pytest_ldos.host.processes import Child, ProcessGroup
from pytest_ldos.recording.protocol import Recorder
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.stack.client_protocol import MoveCommand, MoveReport, ReadyEvent, TrialTag, parse_event
from pytest_ldos.stack.goals import (
    HOME,
    REACHED_POSITION_M,
    REACHED_ROTATION_RAD,
    ErrorCode,
    Goal,
    OutcomeClass,
    classify,
)
from pytest_ldos.stack.protocol import MotionOutcome, StackInfo
from pytest_ldos.tracepoints import Phase

READY_TIMEOUT_S: Final = 30.0
"""Above it, a stack that should take 3 s is broken; a loaded machine is given its time."""

_MOTION_LIMIT_S: Final = 30.0
_ANSWER_GRACE_S: Final = 5.0
_POLL_S: Final = 0.05
_MODULES: Final = ("cyclonedds", "mujoco", "ompl", "rosbags", "toppra")
_PROVIDER: Final = "pytest_ldos.dds._lttng"
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Seven joints are no work for a thread pool, which would only disturb the timing."""

_NODES: Final = "pytest_ldos.stack.embedded"


def embedded_available() -> Availability:
    """Whether everything the embedded stack is made of is installed, its tracepoints too."""
    modules = find_modules(_MODULES, extra="embedded")
    if not modules.ok or importlib.util.find_spec(_PROVIDER) is not None:
        return modules
    return Availability(
        False,
        "pytest-ldos was built without tracepoints, because LTTng-UST was missing",
        "sudo apt-get install liblttng-ust-dev, then build again (make setup, or pip install --force-reinstall)",
    )


def embedded_info() -> StackInfo:
    """What the stack is made of, without starting it."""
    versions = {name: version(name) for name in _MODULES}
    parts = f"MuJoCo {versions['mujoco']}, OMPL {versions['ompl']}, TOPP-RA {versions['toppra']}"
    return StackInfo(
        kind="embedded",
        description=f"embedded ({parts}, Cyclone DDS {versions['cyclonedds']})",
        rmw="cyclonedds",
        versions={**versions, "python": platform.python_version(), "pytest-ldos": version("pytest-ldos")},
    )


class EmbeddedBackend:
    """See `StackBackend`. The processes are recorded by `recorder`."""

    def __init__(self, spec: StackSpec, *, recorder: Recorder, log_directory: Path) -> None:
        self._spec = spec
        self._resources = ExitStack()
        self._group = ProcessGroup(
            log_directory=log_directory,
            prefix=recorder.prefix,
            environment={**recorder.environment, **_ONE_THREAD},
        )

    def start(self) -> EmbeddedStack:
        embedded_available().demand()
        domain = self._resources.enter_context(claim_domain())
        faults = self._spec.faults
        self._start_node(
            "simulator",
            domain,
            control_rate_hz=faults.control_rate_hz or self._spec.control_rate_hz,
            transport_delay_ms=faults.transport_delay_ms,
        )
        self._start_node("move_group", domain, planning_delay_ms=faults.planning_delay_ms)
        self._start_node("state_publisher", domain, callback_delay_ms=faults.callback_delay_ms)
        client = self._start_node("goal_client", domain, talk=True)
        stack = EmbeddedStack(self._spec, domain, self._group, client)
        stack.await_ready()
        return stack

    def _start_node(self, name: str, domain: int, *, talk: bool = False, **parameters: Any) -> Child:
        command = [sys.executable, "-m", f"{_NODES}.{name}", json.dumps({"domain": domain, **parameters})]
        return self._group.start(name, command, talk=talk)

    def stop(self) -> None:
        self._group.stop()
        self._resources.close()


class EmbeddedStack:
    """See `RunningStack`."""

    def __init__(self, spec: StackSpec, domain: int, group: ProcessGroup, client: Child) -> None:
        self.info = embedded_info()
        self.domain = domain
        self._spec = spec
        self._group = group
        self._client = client
        self._events: queue.Queue[ReadyEvent | MoveReport] = queue.Queue()
        threading.Thread(target=self._read_events, name="goal client's events", daemon=True).start()

    def _read_events(self) -> None:
        assert self._client.process.stdout is not None
        for line in self._client.process.stdout:
            self._events.put(parse_event(line))

    def await_ready(self) -> None:
        """Waits for the client to see a planner, a controller and a first joint state."""
        event = self._next_event(READY_TIMEOUT_S)
        if event is None:
            ended = [child.describe_end() for child in self._group.ended()]
            reason = "; ".join(ended) or f"it was not ready within {READY_TIMEOUT_S:.0f} s"
            raise BringUpFailed(
                f"the embedded stack did not start: {reason}\n{self._last_words()}",
                remedy="look at the logs above, and at the load of this machine",
            )

    def pids(self) -> list[int]:
        return [child.pid for child in self._group.children]

    def move(
        self,
        goal: Goal,
        *,
        goal_id: str,
        seed: int | None,
        trial: TrialTag | None,
        start: Mapping[str, float] | None = None,
    ) -> MotionOutcome:
        _refuse_other_joints(goal)
        timeout_s = self._spec.planning_time_s + _MOTION_LIMIT_S
        command = MoveCommand(
            goal_id=goal_id,
            goal=goal,
            seed=seed,
            trial=trial,
            start=start,
            planning_time_s=self._spec.planning_time_s,
            velocity_scaling=self._spec.velocity_scaling,
            acceleration_scaling=self._spec.acceleration_scaling,
            timeout_s=timeout_s,
        )
        report = self._await_report(goal_id, timeout_s + _ANSWER_GRACE_S) if self._say(command) else None
        return self._died(goal_id, timeout_s) if report is None else _to_outcome(report)

    def _await_report(self, goal_id: str, timeout_s: float) -> MoveReport | None:
        """The report of this goal; one of an earlier goal that came too late is passed over."""
        while (event := self._next_event(timeout_s)) is not None:
            if isinstance(event, MoveReport) and event.goal_id == goal_id:
                return event
        return None

    def _say(self, command: MoveCommand) -> bool:
        """Whether the client could be told."""
        assert self._client.process.stdin is not None
        try:
            self._client.process.stdin.write(command.to_line())
            self._client.process.stdin.flush()
        except OSError:
            return False
        return True

    def _next_event(self, timeout_s: float) -> ReadyEvent | MoveReport | None:
        """The client's next word, or ``None`` when time is up or a process has ended."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            try:
                return self._events.get(timeout=_POLL_S)
            except queue.Empty:
                if self._group.ended():
                    return None
        return None

    def _died(self, goal_id: str, timeout_s: float) -> MotionOutcome:
        ended = [child.describe_end() for child in self._group.ended()]
        reason = "; ".join(ended) or f"the goal client gave no answer within {timeout_s + _ANSWER_GRACE_S:.0f} s"
        return MotionOutcome(
            goal_id=goal_id,
            outcome=OutcomeClass.STACK_DIED,
            error_code=None,
            message=f"{reason}\n{self._last_words()}",
            stamps_ns={},
        )

    def _last_words(self) -> str:
        """The ends of all logs that are not empty."""
        logs = ((child.name, child.last_lines()) for child in self._group.children)
        return "\n".join(f"--- {name} ---\n{lines}" for name, lines in logs if lines)


def _refuse_other_joints(goal: Goal) -> None:
    """A goal for joints must name each joint of the Panda and no other."""
    assert HOME.joints is not None
    if goal.joints is None or set(goal.joints) == set(HOME.joints):
        return
    wrong = sorted(set(goal.joints) ^ set(HOME.joints))
    raise ConfigurationError(
        f"goal {goal.name!r} does not fit the Panda's joints: {', '.join(wrong)} missing or unknown",
        remedy=f"give a position for each of {', '.join(HOME.joints)}",
    )


def _to_outcome(report: MoveReport) -> MotionOutcome:
    outcome = classify(report.error_code, executed=Phase.EXECUTING in report.stamps_ns)
    message = report.message
    if outcome is OutcomeClass.SUCCESS and not _is_reached(report):
        outcome = OutcomeClass.CONTROL_FAILED
        message = _describe_miss(report)
    return MotionOutcome(
        goal_id=report.goal_id,
        outcome=outcome,
        error_code=report.error_code if outcome is not OutcomeClass.CONTROL_FAILED else ErrorCode.CONTROL_FAILED,
        message=message,
        stamps_ns=report.stamps_ns,
        plan_duration_ns=report.plan_duration_ns,
        plan_points=report.plan_points,
        position_error_m=report.position_error_m,
        rotation_error_rad=report.rotation_error_rad,
    )


def _is_reached(report: MoveReport) -> bool:
    return (
        report.position_error_m is not None
        and report.rotation_error_rad is not None
        and report.position_error_m <= REACHED_POSITION_M
        and report.rotation_error_rad <= REACHED_ROTATION_RAD
    )


def _describe_miss(report: MoveReport) -> str:
    if report.position_error_m is None or report.rotation_error_rad is None:
        return "success was reported, but no joint state arrived to check the final pose with"
    return (
        f"success was reported, but the tip is {report.position_error_m * 1000:.1f} mm and "
        f"{report.rotation_error_rad:.3f} rad from the goal"
    )
