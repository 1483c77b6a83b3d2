"""Settings that only a stack of real ROS 2 nodes has: a launch file, names, a middleware."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pytest_ldos.base.requirements import require
from pytest_ldos.scenario.words import Simulation

PANDA_LAUNCH_FILE: Final = "ldos_bringup/stack.launch.py"

_GRAPH_NAME: Final = re.compile(r"/[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")
_NEEDS: Final = ("topic", "service", "action", "active")
_RMW: Final = re.compile(r"rmw_[a-z0-9_]+")


@dataclass(frozen=True, kw_only=True)
class Ros2Spec:
    """Start of a stack of ROS 2 nodes, and its names for things.

    Attributes:
        launch_file: ``PACKAGE/FILE``, or a path.
        launch_arguments: for it, by name.
        sim: what is given to the launch file as ``sim:=``; ``auto`` gives the Panda's own
            Gazebo where that is installed, mock hardware where it is not, and nothing to
            other launch files.
        rmw: middleware, ``rmw_…``; empty for that of ``RMW_IMPLEMENTATION``, or ROS 2's default.
        action: the MoveGroup action.
        group: MoveIt's planning group.
        base_frame: that poses of goals are given in.
        joint_states: topic of the joint states.
        controller_manager: node that is asked for its controllers.
        controllers: that must be active before a goal is sent; none unless named, where no `move_group` is asked.
        ready: what else must be there before a trial: ``topic:/scan`` (a message came), ``service:/NAME``,
            ``action:/NAME``, or ``active:/NODE`` (a lifecycle node is active).
        seeded_planner: True if MoveIt's pipeline plans through ``ldos_planner``, which takes a seed with each
            goal; the Panda's own does where it is installed.
        ready_timeout_s: above it, a stack that is not ready has failed to start.
    """

    launch_file: str = PANDA_LAUNCH_FILE
    launch_arguments: Mapping[str, str] = field(default_factory=dict)
    sim: Simulation = Simulation.AUTO
    rmw: str = ""
    action: str = "/move_action"
    group: str = "panda_arm"
    base_frame: str = "panda_link0"
    joint_states: str = "/joint_states"
    controller_manager: str = "/controller_manager"
    controllers: tuple[str, ...] = ("joint_state_broadcaster", "panda_arm_controller")
    ready: tuple[str, ...] = ()
    seeded_planner: bool = False
    ready_timeout_s: float = 60.0

    def __post_init__(self) -> None:
        require(
            "/" in self.launch_file,
            f"launch_file {self.launch_file!r} is neither PACKAGE/FILE nor the path of a file",
            remedy="name a launch file as my_package/stack.launch.py, or by its path from pyproject.toml",
        )
        for name in ("action", "joint_states", "controller_manager"):
            value = getattr(self, name)
            require(
                _GRAPH_NAME.fullmatch(value) is not None,
                f"{name} {value!r} is no name of the ROS graph",
                remedy=f"write it whole, as in /{value.strip('/') or name}",
            )
        for need in self.ready:
            kind, _, name = need.partition(":")
            require(
                kind in _NEEDS and _GRAPH_NAME.fullmatch(name) is not None,
                f"ready has {need!r}, which is no need",
                remedy=f"write KIND:/NAME, with one of {', '.join(_NEEDS)}",
            )
        for name in ("group", "base_frame"):
            require(bool(getattr(self, name)), f"{name} of the stack is empty")
        require(
            not self.rmw or _RMW.fullmatch(self.rmw) is not None,
            f"rmw {self.rmw!r} is no middleware",
            remedy="give the name of its package, as in rmw_cyclonedds_cpp",
        )
        require(0 < self.ready_timeout_s <= 600, "ready_timeout_s must lie between 0 and 600")

    @property
    def is_panda(self) -> bool:
        """True for this project's own Panda stack."""
        return self.launch_file == PANDA_LAUNCH_FILE
