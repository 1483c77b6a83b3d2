"""Faults that can be planted in a stack of ROS 2 nodes without changing a node.

The control rate, and delays of planning and of the joint states' callback, are parameters of the Panda's bring-up. A
failing goal is one that no arm can reach. Other processes take CPU time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import BringUpFailed, ConfigurationError
from pytest_ldos.base.writable import writing
from pytest_ldos.host.ros import find_ros_package
from pytest_ldos.robot.stack.client_protocol import MoveCommand
from pytest_ldos.robot.stack.goals import Pose
from pytest_ldos.robot.stack.ros2.installed import SEEDED_PLANNER
from pytest_ldos.scenario.model import StackSpec

_OF_ANY: Final = frozenset({"cpu_steal"})
_OF_ARMS: Final = frozenset({"failure_rate"})
_OF_THE_PANDA: Final = frozenset(
    {"control_rate_hz", "control_rate_drop", "planning_delay_ms", "planning_delay_share", "callback_delay_ms"}
)

_CONFIGURATION: Final = "ldos_panda_config"


@dataclass(frozen=True)
class _Parameters:
    """A parameter file of the Panda's configuration, and the launch argument that replaces it."""

    file: str
    argument: str

    def changed(self, directory: Path, numbers: Mapping[str, float], environment: Mapping[str, str] | None) -> str:
        """Writes the file with changed numbers, by parameter, to `directory`; returns its path.

        Raises:
            BringUpFailed: the installed file does not set one of them.
        """
        prefix = find_ros_package(_CONFIGURATION, environment)
        source = Path() if prefix is None else prefix / "share" / _CONFIGURATION / "config" / self.file
        text = source.read_text("utf-8") if source.is_file() else ""
        for name, number in numbers.items():
            text, count = re.subn(rf"^( *{name}: *)[0-9.]+", rf"\g<1>{number}", text, flags=re.MULTILINE)
            if count != 1:
                raise BringUpFailed(
                    f"{name} cannot be changed: {self.file} of {_CONFIGURATION} is not what it was",
                    remedy="rebuild ros_ws and source it",
                )
        file = directory / f"{self.argument}.yaml"
        with writing(file):
            file.write_text(text, "utf-8")
        return str(file)


_CONTROLLERS: Final = _Parameters("ros2_controllers.yaml", "controllers")
_PLANNING: Final = _Parameters("ompl_planning.yaml", "planning")
_OF_PLANNING: Final = ("planning_delay_ms", "planning_delay_share")

_OUT_OF_REACH: Final = Pose((1000.0, 0.0, 0.5), (1.0, 0.0, 0.0, 0.0))
_PLANNING_TIME_S: Final = 0.2
"""Time after which MoveIt gives up on a goal that is out of reach."""


def demand_plantable(spec: StackSpec) -> None:
    """Refuses faults that this stack does not support.

    Raises:
        ConfigurationError: names them, and those that can be planted.
    """
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
    """Returns the launch arguments that plant a fault, and writes their files to `directory`.

    Args:
        environment: environment of the measured workspace; ``None`` for ours.

    Raises:
        BringUpFailed: the installed configuration lacks a parameter to change, or no planner supports it.
    """
    rate_hz = spec.faults.control_rate_of(spec.control_rate_hz)
    planted: dict[_Parameters, dict[str, float]] = {
        _CONTROLLERS: {"update_rate": round(rate_hz)} if rate_hz != spec.control_rate_hz else {},
        # Without a decimal point, the parameter would have another type.
        _PLANNING: {name: float(number) for name in _OF_PLANNING if (number := getattr(spec.faults, name))},
    }
    if planted[_PLANNING] and find_ros_package(SEEDED_PLANNER, environment) is None:
        raise BringUpFailed(
            f"{', '.join(planted[_PLANNING])}: MoveIt's own planner takes no delays, and {SEEDED_PLANNER} is not built",
            remedy=f"install what it lacks, and build it: ldos ros-packages {SEEDED_PLANNER}",
        )
    files = {
        parameters.argument: parameters.changed(directory, numbers, environment)
        for parameters, numbers in planted.items()
        if numbers
    }
    late_ms = spec.faults.callback_delay_ms
    return files | ({"callback_delay_ms": str(late_ms)} if late_ms else {})


def out_of_reach(command: MoveCommand) -> MoveCommand:
    """Returns the command with a pose that no arm can reach."""
    link = command.goal.link
    goal = replace(command.goal, pose=_OUT_OF_REACH, joints=None, link=link)
    return replace(command, goal=goal, planning_time_s=min(command.planning_time_s, _PLANNING_TIME_S))
