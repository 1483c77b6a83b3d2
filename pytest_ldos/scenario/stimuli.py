"""Specs of stimuli, which make the stack work in a trial.

A new stimulus needs a class here, a field of `StimuliSpec`, a member of `StimulusKind`, and a program that speaks the
line protocol.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from pytest_ldos.base.errors import require
from pytest_ldos.scenario.words import StimulusKind

GRAPH_NAME: Final = re.compile(r"/[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
"""Absolute name of a topic, a service or an action."""


def require_graph_name(key: str, value: str, *, where: str = "") -> None:
    require(
        GRAPH_NAME.fullmatch(value) is not None,
        f"{where}{key} {value!r} is not a name in the ROS graph",
        remedy=f"write the full name, as in /{value.strip('/') or key}",
    )


_PROGRAMS: Final = "pytest_ldos.robot.stack.ros2.programs"
_LONGEST_S: Final = 3600.0


@dataclass(frozen=True, kw_only=True)
class StimulusSpec:
    """Settings of a stimulus, and facts about its kind.

    Attributes:
        KIND: value of `stimulus` that selects it.
        NEEDS: settings of its table that must not be empty.
        NEEDS_GOALS: True if its messages come from the file `goals`.
        PACKAGES: ROS packages that it needs.
        PROGRAM: module of our program for ROS 2, which speaks the line protocol; empty if there is none.
        EMBEDDED: node of the embedded stack that sends it; empty if there is none.
        NOT_READY: message if its program never became ready.
        LATENCIES: names of its built-in metrics, unless they depend on its settings; see `latencies`.
    """

    KIND: ClassVar[StimulusKind]
    NEEDS: ClassVar[tuple[str, ...]] = ()
    NEEDS_GOALS: ClassVar[bool] = False
    PACKAGES: ClassVar[tuple[str, ...]] = ()
    PROGRAM: ClassVar[str] = ""
    EMBEDDED: ClassVar[str] = ""
    NOT_READY: ClassVar[str] = ""
    LATENCIES: ClassVar[tuple[str, ...]] = ()

    @property
    def latencies(self) -> tuple[str, ...]:
        """Names of its built-in metrics; empty if its settings fix the duration of a trial."""
        return self.LATENCIES

    @property
    def action(self) -> str:
        """Action whose server must be available before a trial; empty for none."""
        return ""

    @property
    def service(self) -> str:
        """Service that must be available before a trial; empty for none."""
        return ""

    @property
    def interface(self) -> str:
        """ROS type of its messages; empty for none."""
        return ""

    @property
    def case_name(self) -> str:
        """Name of its only case, if no file defines cases."""
        return str(self.KIND)

    @property
    def longest_s(self) -> float:
        """Timeout of a trial."""
        return _LONGEST_S

    @property
    def own_command(self) -> tuple[str, ...]:
        """Command of the user's own program; empty if there is none."""
        return ()

    @property
    def data(self) -> str:
        """Recorded data whose digest is part of the stack's version; empty for none."""
        return ""

    def _require_graph_name(self, key: str, value: str) -> None:
        if value:
            require_graph_name(key, value, where=f"[tool.ldos.stimulus.{self.KIND}] ")

    def _require_type(self, key: str, value: str, kind: str) -> None:
        words = value.split("/")
        self._require(
            not value or (len(words) == 3 and words[1] == kind and all(words)),
            f"{key} {value!r} is not a type",
            remedy=f"write it as PACKAGE/{kind}/NAME",
        )

    def _require_seconds(self, key: str, value: float) -> None:
        self._require(0 < value <= _LONGEST_S, f"{key} must be between 0 and 3600")

    def _require(self, condition: bool, problem: str, *, remedy: str = "") -> None:
        require(condition, f"[tool.ldos.stimulus.{self.KIND}] {problem}", remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class MoveGroupSpec(StimulusSpec):
    """Goals for an arm, configured by the stack's settings."""

    KIND = StimulusKind.MOVE_GROUP
    PACKAGES = ("ldos_goal_client", "sensor_msgs")
    NOT_READY = "the goal client did not find the action server and a joint state"
    LATENCIES = ("T1", "T2", "T4")


FEEDBACK: Final = "feedback"
"""Value of `ActionSpec.executing` if execution begins with the first feedback."""


@dataclass(frozen=True, kw_only=True)
class ActionSpec(StimulusSpec):
    """Goals of any action: a trial is one goal, from sending it to its result.

    Attributes:
        name: of the action, such as ``/navigate_to_pose``.
        type: ``PACKAGE/action/NAME``.
        executing: sign that execution began, at which T1 ends and T2 begins: a topic, whose first message after the
            goal counts, or ``feedback`` for the first feedback; empty if there is none.
        success_codes: values of the result's ``error_code`` that are successes; empty for the type's constants
            ``NONE``, ``SUCCESS`` and ``SUCCESSFUL``.
        reset_service: service to call after each goal; empty for none.
        reset_type: its type.
        timeout_s: timeout of a goal.
    """

    KIND = StimulusKind.ACTION
    NEEDS = ("name", "type")
    NEEDS_GOALS = True
    PROGRAM = _PROGRAMS
    EMBEDDED = "action_caller"

    name: str = ""
    type: str = ""
    executing: str = ""
    success_codes: tuple[int, ...] = ()
    reset_service: str = ""
    reset_type: str = "std_srvs/srv/Empty"
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        self._require_graph_name("name", self.name)
        self._require_graph_name("reset_service", self.reset_service)
        self._require_graph_name("executing", "" if self.executing == FEEDBACK else self.executing)
        self._require_type("type", self.type, "action")
        self._require_type("reset_type", self.reset_type, "srv")
        self._require_seconds("timeout_s", self.timeout_s)

    @property
    def latencies(self) -> tuple[str, ...]:
        return ("T1", "T2", "T4") if self.executing else ("T4",)

    @property
    def action(self) -> str:
        return self.name

    @property
    def interface(self) -> str:
        return self.type

    @property
    def longest_s(self) -> float:
        return self.timeout_s


@dataclass(frozen=True, kw_only=True)
class ServiceSpec(StimulusSpec):
    """Calls of a service: a trial is a number of calls, one after another.

    Attributes:
        name: of the service.
        type: ``PACKAGE/srv/NAME``.
        calls: number of calls in each trial.
        timeout_s: timeout of a call.
    """

    KIND = StimulusKind.SERVICE
    NEEDS = ("name", "type")
    PROGRAM = _PROGRAMS
    LATENCIES = ("call", "call_p99")

    name: str = ""
    type: str = ""
    calls: int = 20
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        self._require_graph_name("name", self.name)
        self._require_type("type", self.type, "srv")
        self._require_seconds("timeout_s", self.timeout_s)
        self._require(1 <= self.calls <= 100_000, "calls must be between 1 and 100000")

    @property
    def service(self) -> str:
        return self.name

    @property
    def interface(self) -> str:
        return self.type

    @property
    def longest_s(self) -> float:
        return self.timeout_s * self.calls


@dataclass(frozen=True, kw_only=True)
class BagSpec(StimulusSpec):
    """A recorded bag: a trial is one playback of it, or of a part.

    Attributes:
        path: folder or file of the bag, in any storage that rosbag2 reads.
        rate: of the playback; 2 plays twice as fast.
        topics: topics to play; empty for all.
        start_s: start of the playback, from the bag's start.
        duration_s: of the played part, in the bag's time; ``0`` for the rest of the bag.
        clock: True to publish ``/clock``, for nodes with simulated time.
    """

    KIND = StimulusKind.BAG
    NEEDS = ("path",)
    PACKAGES = ("ros2bag", "rosbag2_py", "rosbag2_interfaces")
    PROGRAM = _PROGRAMS

    path: str = ""
    rate: float = 1.0
    topics: tuple[str, ...] = ()
    start_s: float = 0.0
    duration_s: float = 0.0
    clock: bool = False

    def __post_init__(self) -> None:
        self._require(0.01 <= self.rate <= 100, "rate must be between 0.01 and 100")
        self._require(self.start_s >= 0, "start_s must be 0 or more")
        self._require(0 <= self.duration_s <= _LONGEST_S, "duration_s must be between 0 and 3600")
        for topic in self.topics:
            self._require_graph_name("topics", topic)

    @property
    def case_name(self) -> str:
        return Path(self.path).name

    @property
    def data(self) -> str:
        return self.path


@dataclass(frozen=True, kw_only=True)
class WindowSpec(StimulusSpec):
    """No stimulus: a trial is a window of time of the running system.

    Attributes:
        seconds: length of a trial.
    """

    KIND = StimulusKind.WINDOW

    seconds: float = 5.0

    def __post_init__(self) -> None:
        self._require_seconds("seconds", self.seconds)


@dataclass(frozen=True, kw_only=True)
class PlanSpec(StimulusSpec):
    """Planning problems for MoveIt or the embedded stack: a trial is one plan, and nothing moves.

    Attributes:
        problems: folder or file of problems; see `robot.stack.problems`.
        service: MoveIt's planning service.
        planner: the planner's name in MoveIt's configuration; empty for the pipeline's default.
        pipeline: the planning pipeline's name; empty for the default.
        tool: link whose path is measured; empty for none.
        time_limit_s: planning time that the planner may take.
        check: True to refuse problems whose start or goal is in collision, or whose goal cannot be reached; otherwise
            they are failed trials.
    """

    KIND = StimulusKind.PLAN
    NEEDS = ("problems",)
    PACKAGES = ("moveit_msgs",)
    PROGRAM = "pytest_ldos.robot.stack.ros2.planning"
    EMBEDDED = "problem_planner"
    NOT_READY = "the planning service, or a problem's start, goal or scene, is not as it must be"

    problems: str = ""
    service: str = "/plan_kinematic_path"
    planner: str = ""
    pipeline: str = ""
    tool: str = ""
    time_limit_s: float = 5.0
    check: bool = True

    def __post_init__(self) -> None:
        self._require_graph_name("service", self.service)
        self._require_seconds("time_limit_s", self.time_limit_s)

    @property
    def latencies(self) -> tuple[str, ...]:
        return ("T1", "path_length", *(("tool_path",) if self.tool else ()), "trajectory", "waypoints")

    @property
    def longest_s(self) -> float:
        return self.time_limit_s + 10.0

    @property
    def data(self) -> str:
        return self.problems


@dataclass(frozen=True, kw_only=True)
class ScriptSpec(StimulusSpec):
    """A user's command that speaks the line protocol; see `robot.stack.lines`.

    Attributes:
        command: its words; paths of files in the project are relative to pyproject.toml.
        executing: True if it stamps ``planning`` and ``executing``: T1 and T2 are measured, too.
        timeout_s: timeout of a trial.
    """

    KIND = StimulusKind.SCRIPT
    NEEDS = ("command",)
    NOT_READY = "the script did not report that it is ready"

    command: tuple[str, ...] = ()
    executing: bool = False
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        self._require_seconds("timeout_s", self.timeout_s)

    @property
    def latencies(self) -> tuple[str, ...]:
        return ("T1", "T2", "T4") if self.executing else ("T4",)

    @property
    def longest_s(self) -> float:
        return self.timeout_s

    @property
    def own_command(self) -> tuple[str, ...]:
        return self.command


@dataclass(frozen=True, kw_only=True)
class StimuliSpec:
    action: ActionSpec = field(default_factory=ActionSpec)
    service: ServiceSpec = field(default_factory=ServiceSpec)
    bag: BagSpec = field(default_factory=BagSpec)
    window: WindowSpec = field(default_factory=WindowSpec)
    plan: PlanSpec = field(default_factory=PlanSpec)
    script: ScriptSpec = field(default_factory=ScriptSpec)
