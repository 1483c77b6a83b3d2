"""The stimulus of a stack of ROS 2 nodes: its program, and its cases."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, Unavailable
from pytest_ldos.base.writable import writing
from pytest_ldos.host.ros import find_ros_package, remedy_for_packages
from pytest_ldos.robot.stack.conversation import Conversation
from pytest_ldos.robot.stack.goals import PANDA_GOALS, GoalBook, read_goals
from pytest_ldos.robot.stack.stimulus.protocol import CaseBook, Stimulus, read_cases, single_case
from pytest_ldos.robot.stack.stimulus.senders import Arm, ArmStimulus, ProgramStimulus, WindowStimulus
from pytest_ldos.scenario.model import Ros2Spec, StackSpec

PACKAGE: Final = "ldos_goal_client"
_PROGRAM: Final = "lib/ldos_goal_client/goal_client"
_GRACE_S: Final = 10.0
"""Grace in addition to the stack's readiness timeout, so that the latter, whose message is more precise, expires
first."""


def goal_client_command(spec: Ros2Spec, *, directory: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """Returns the command; writes its parameters to a file in `directory`.

    Raises:
        Unavailable: the workspace is not sourced.
    """
    prefix = find_ros_package(PACKAGE, environment)
    if prefix is None:
        remedy = remedy_for_packages([PACKAGE], environment=environment)
        raise Unavailable(f"ROS package {PACKAGE} not found", remedy=remedy)
    parameters = {
        "interactive": True,
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
    """A planned stimulus, before its stack runs.

    Attributes:
        goal_book: the arm's goals, for the stimulus ``move_group``; empty for others.
        book: cases of other stimuli.
    """

    spec: StackSpec
    goal_book: GoalBook
    book: CaseBook

    @property
    def name(self) -> str:
        """Name of its program and log."""
        return "goal_client" if self.spec.moves_arm else "stimulus"

    def command(self, directory: Path, environment: Mapping[str, str] | None) -> list[str] | None:
        """Returns its program's command and writes its files to `directory`; ``None`` without a program."""
        if self.spec.moves_arm:
            return goal_client_command(self.spec.ros2, directory=directory, environment=environment)
        driver = self.spec.driver
        if not driver.PROGRAM:
            return [*driver.own_command] or None
        settings = {"spec": asdict(driver), "messages": self.book.all_messages, "reset": self.book.reset}
        return [sys.executable, "-m", driver.PROGRAM, json.dumps(settings, default=_refuse_value)]

    def build(self, arm: Arm, conversation: Conversation | None, why: Callable[[], str]) -> Stimulus:
        """Returns the stimulus of a running stack.

        Args:
            arm: the stack itself, if it has an arm.
            why: returns why the stack has ended; empty while it runs.
        """
        if self.spec.moves_arm:
            return ArmStimulus(arm)
        if conversation is None:
            return WindowStimulus(self.spec.stimuli.window.seconds, why)
        return ProgramStimulus(conversation, self.book, timeout_s=self.spec.driver.longest_s, why=why)


def plan_stimulus(spec: StackSpec) -> StimulusPlan:
    """Reads the files of a stack's stimulus.

    Raises:
        ConfigurationError: a file is invalid, or the user's own arm has no goals.
    """
    if spec.moves_arm:
        return StimulusPlan(spec, goals_of(spec), CaseBook({}))
    book = read_cases(Path(spec.goals)) if spec.goals else single_case(spec.driver.case_name)
    return StimulusPlan(spec, PANDA_GOALS, book)


def _refuse_value(value: Any) -> Any:
    raise ConfigurationError(f"a goal has the value {value!r}", remedy="give numbers, texts, lists and tables")


def goals_of(spec: StackSpec) -> GoalBook:
    """Returns the arm's goals by name.

    Raises:
        ConfigurationError: the file is invalid, or the user's own robot has no goals.
    """
    if spec.goals:
        return read_goals(Path(spec.goals))
    if spec.ros2.is_panda:
        return PANDA_GOALS
    raise ConfigurationError(
        f"no goals for the robot of {spec.ros2.launch_file}",
        remedy='name a file with a home and goal sets in [tool.ldos.stack]: goals = "goals.yaml"',
    )
