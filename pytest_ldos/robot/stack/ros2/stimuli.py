"""The stimulus of a stack of ROS 2 nodes, and faults that can be planted without changing a node.

The control rate, and delays of planning and of the joint states' callback, are parameters of the Panda's bring-up. A
failing goal is one that no arm can reach. Other processes take CPU time.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import BringUpFailed, ConfigurationError, Unavailable
from pytest_ldos.base.files import writing
from pytest_ldos.host.availability import find_ros_package, remedy_for_packages
from pytest_ldos.robot.stack.goals import PANDA_GOALS, GoalBook, Pose, read_goals
from pytest_ldos.robot.stack.lines import MoveCommand
from pytest_ldos.robot.stack.problems import read_problems
from pytest_ldos.robot.stack.protocol import CaseBook, Stimulus, read_cases, single_case
from pytest_ldos.robot.stack.ros2.installed import SEEDED_PLANNER
from pytest_ldos.robot.stack.senders import Arm, ArmStimulus, Conversation, ProgramStimulus, WindowStimulus
from pytest_ldos.scenario.model import Ros2Spec, StackSpec
from pytest_ldos.scenario.words import StimulusKind

_OF_ANY: Final = frozenset({"cpu_steal"})
_OF_ARMS: Final = frozenset({"failure_rate"})
_OF_THE_PANDA: Final = frozenset(
    {"control_rate_hz", "control_rate_drop", "planning_delay_ms", "planning_delay_share", "callback_delay_ms"}
)

_CONFIGURATION: Final = "ldos_panda_config"
_PARAMETER_FILES: Final = {"controllers": "ros2_controllers.yaml", "planning": "ompl_planning.yaml"}
"""Parameter files of the Panda's configuration, by the launch argument that replaces them."""

_OF_PLANNING: Final = ("planning_delay_ms", "planning_delay_share")

_OUT_OF_REACH: Final = Pose((1000.0, 0.0, 0.5), (1.0, 0.0, 0.0, 0.0))
_PLANNING_TIME_S: Final = 0.2  # until MoveIt gives up on it


def demand_plantable(spec: StackSpec) -> None:
    """Raises `ConfigurationError` with the faults that this stack does not support, and those that it does."""
    wanted = {name for name, value in asdict(spec.faults).items() if value}
    possible = _OF_ANY | (_OF_ARMS if spec.moves_arm else set()) | (_OF_THE_PANDA if spec.ros2.is_panda else set())
    if wanted <= possible:
        return
    raise ConfigurationError(
        f"this stack cannot be given {', '.join(sorted(wanted - possible))}: it would take a change of its nodes",
        remedy=f"plant {', '.join(sorted(possible))}, or take the embedded stack (--ldos-stack=embedded)",
    )


def fault_arguments(
    spec: StackSpec, directory: Path, environment: Mapping[str, str] | None = None
) -> Mapping[str, str]:
    """Returns the launch arguments that plant a fault in a workspace, and writes their files to `directory`.

    Raises `BringUpFailed` if the installed configuration lacks a parameter to change, or no planner supports it.
    """
    rate_hz = spec.faults.control_rate_of(spec.control_rate_hz)
    planted: dict[str, dict[str, float]] = {
        "controllers": {"update_rate": round(rate_hz)} if rate_hz != spec.control_rate_hz else {},
        # Without a decimal point, the parameter would have another type.
        "planning": {name: float(number) for name in _OF_PLANNING if (number := getattr(spec.faults, name))},
    }
    if planted["planning"] and find_ros_package(SEEDED_PLANNER, environment) is None:
        delays = ", ".join(planted["planning"])
        raise BringUpFailed(
            f"{delays}: MoveIt's own planner takes no delays, and {SEEDED_PLANNER} is not built",
            remedy=f"install what it lacks, and build it: ldos ros-packages {SEEDED_PLANNER}",
        )
    found = find_ros_package(_CONFIGURATION, environment) or Path()
    arguments = {}
    for argument, numbers in planted.items():
        if numbers:
            source = found / "share" / _CONFIGURATION / "config" / _PARAMETER_FILES[argument]
            file = directory / f"{argument}.yaml"
            with writing(file):
                file.write_text(_changed(source, numbers), "utf-8")
            arguments[argument] = str(file)
    if spec.faults.callback_delay_ms:
        arguments["callback_delay_ms"] = str(spec.faults.callback_delay_ms)
    return arguments


def _changed(source: Path, numbers: Mapping[str, float]) -> str:
    text = source.read_text("utf-8") if source.is_file() else ""
    for name, number in numbers.items():
        text, count = re.subn(rf"^( *{name}: *)[0-9.]+", rf"\g<1>{number}", text, flags=re.MULTILINE)
        if count != 1:
            raise BringUpFailed(
                f"{name} cannot be changed: {source.name} of {_CONFIGURATION} is not what it was",
                remedy="rebuild ros_ws and source it",
            )
    return text


def out_of_reach(command: MoveCommand) -> MoveCommand:
    goal = replace(command.goal, pose=_OUT_OF_REACH, joints=None)
    return replace(command, goal=goal, planning_time_s=min(command.planning_time_s, _PLANNING_TIME_S))


PACKAGE: Final = "ldos_goal_client"
_PROGRAM: Final = "lib/ldos_goal_client/goal_client"
_GRACE_S: Final = 10.0
"""Grace in addition to the stack's readiness timeout, so that the latter, whose message is more precise, expires
first."""


def goal_client_command(spec: Ros2Spec, *, directory: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """Returns the command, with parameters in a file in `directory`; raises `Unavailable` if it is not sourced."""
    prefix = find_ros_package(PACKAGE, environment)
    if prefix is None:
        remedy = remedy_for_packages([PACKAGE], environment=environment)
        raise Unavailable(f"ROS package {PACKAGE} not found", remedy=remedy)
    parameters = {
        "interactive": True,  # earlier clients also ran goals by themselves
        "action_name": spec.action,
        "group": spec.group,
        "base_frame": spec.base_frame,
        "joint_states_topic": spec.joint_states,
        "server_timeout": spec.ready_timeout_s + _GRACE_S,
    }
    file = directory / "goal_client.yaml"
    # JSON is YAML; unlike on a command line, a group called "on" remains a text.
    with writing(file):
        file.write_text(json.dumps({"/**": {"ros__parameters": parameters}}, indent=1), "utf-8")
    return [str(prefix / _PROGRAM), "--ros-args", "--params-file", str(file)]


@dataclass(frozen=True)
class StimulusPlan:
    """A planned stimulus, before its stack runs: the goals of the stimulus ``move_group``, or the cases of another."""

    spec: StackSpec
    goal_book: GoalBook
    book: CaseBook

    def command(self, directory: Path, environment: Mapping[str, str] | None) -> list[str] | None:
        """Returns its program's command and writes its files to `directory`; ``None`` without a program."""
        if self.spec.moves_arm:
            return goal_client_command(self.spec.ros2, directory=directory, environment=environment)
        driver = self.spec.driver
        if not driver.PROGRAM:
            return [*driver.own_command] or None
        cases = {"messages": self.book.all_messages, "reset": self.book.reset}
        settings = {"stimulus": self.spec.stimulus, "spec": asdict(driver), **cases}
        file = directory / "stimulus.json"
        with writing(file):
            file.write_text(json.dumps(settings, default=_refuse_value), "utf-8")
        return [sys.executable, "-m", driver.PROGRAM, str(file)]

    def build(self, arm: Arm, conversation: Conversation | None, why: Callable[[], str]) -> Stimulus:
        """Returns the stimulus of a running stack (`arm`); `why` returns why it has ended, empty while it runs."""
        if self.spec.moves_arm:
            return ArmStimulus(arm)
        if conversation is None:
            return WindowStimulus(self.spec.stimuli.window.seconds, why)
        return ProgramStimulus(conversation, self.book, timeout_s=self.spec.driver.longest_s, why=why)


def plan_stimulus(spec: StackSpec) -> StimulusPlan:
    """Reads the files of a stack's stimulus; raises `ConfigurationError` if one is invalid, or as `goals_of`."""
    if spec.moves_arm:
        return StimulusPlan(spec, goals_of(spec), CaseBook({}))
    if spec.stimulus is StimulusKind.PLAN:
        return StimulusPlan(spec, PANDA_GOALS, read_problems(spec.stimuli.plan))
    book = read_cases(Path(spec.goals)) if spec.goals else single_case(spec.driver.case_name)
    return StimulusPlan(spec, PANDA_GOALS, book)


def _refuse_value(value: Any) -> Any:
    raise ConfigurationError(f"a goal has the value {value!r}", remedy="give numbers, texts, lists and tables")


def goals_of(spec: StackSpec) -> GoalBook:
    """Raises `ConfigurationError` if the file is invalid, or the user's own robot has no goals."""
    if spec.goals:
        return read_goals(Path(spec.goals))
    if spec.ros2.is_panda:
        return PANDA_GOALS
    raise ConfigurationError(
        f"no goals for the robot of {spec.ros2.launch_file}",
        remedy='name a file with a home and goal sets in [tool.ldos.stack]: goals = "goals.yaml"',
    )
