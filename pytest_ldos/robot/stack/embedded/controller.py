"""The joint trajectory controller: follows one trajectory at a time, otherwise holds still.

Trajectories are quintic between points, as in ros2_controllers. The controller knows neither DDS nor clocks: `update`
receives the (simulator's) time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from scipy.interpolate import BPoly

from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.robot.stack.embedded.kinematics import Joints
from pytest_ldos.robot.stack.embedded.timed_path import TimedPath

PATH_TOLERANCE_RAD: Final = 0.2
GOAL_TOLERANCE_RAD: Final = 0.01
STOPPED_VELOCITY_RAD_S: Final = 0.01
GOAL_TIME_TOLERANCE_S: Final = 1.0


class TrajectoryResult(IntEnum):
    """Error codes of `control_msgs/action/FollowJointTrajectory`."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


@dataclass(frozen=True)
class Command:
    """Command to the hardware: rad and rad/s, shape ``(7,)`` each."""

    position: Joints
    velocity: Joints


class Trajectory:
    """Desired joint positions over time since the start, quintic between points, and at rest after the end."""

    def __init__(self, path: TimedPath) -> None:
        self.duration_s = path.duration_s
        self._end = path.positions[-1]
        derivatives = np.stack([path.positions, path.velocities, path.accelerations], axis=1)
        self._position = BPoly.from_derivatives(path.times_s, derivatives)
        self._velocity = self._position.derivative()

    def at(self, time_s: float) -> tuple[Joints, Joints]:
        """Returns position (rad) and velocity (rad/s), each of shape ``(7,)``."""
        if time_s >= self.duration_s:
            return self._end, np.zeros_like(self._end)
        return self._position(time_s), self._velocity(time_s)


class TrajectoryController:
    """Converts a trajectory to commands, cycle by cycle."""

    def __init__(self, position: Joints) -> None:
        self._hold = position.copy()
        self._rest = np.zeros_like(position)
        self._trajectory: Trajectory | None = None
        self._start_ns = 0
        self.command = Command(self._hold, self._rest)

    def follow(self, path: TimedPath, now_ns: int) -> None:
        """Begins a trajectory now, replacing a running one."""
        self._trajectory = Trajectory(path)
        self._start_ns = now_ns

    def hold(self) -> None:
        """Stops at the last commanded position."""
        self._hold = self.command.position
        self._trajectory = None

    def update(self, now_ns: int, position: Joints, velocity: Joints) -> TrajectoryResult | None:
        """Runs one control cycle: sets `command`, and returns the result of a trajectory when it ends."""
        if self._trajectory is None:
            self.command = Command(self._hold, self._rest)
            return None
        elapsed_s = (now_ns - self._start_ns) / NS_PER_S
        wanted, wanted_velocity = self._trajectory.at(elapsed_s)
        self.command = Command(wanted, wanted_velocity)
        result = self._judge(elapsed_s, np.abs(wanted - position).max(), np.abs(velocity).max())
        if result is not None:
            self.hold()
        return result

    def _judge(self, elapsed_s: float, error_rad: float, speed_rad_s: float) -> TrajectoryResult | None:
        assert self._trajectory is not None
        over_s = elapsed_s - self._trajectory.duration_s
        if over_s < 0:
            return TrajectoryResult.PATH_TOLERANCE_VIOLATED if error_rad > PATH_TOLERANCE_RAD else None
        if error_rad <= GOAL_TOLERANCE_RAD and speed_rad_s <= STOPPED_VELOCITY_RAD_S:
            return TrajectoryResult.SUCCESSFUL
        return TrajectoryResult.GOAL_TOLERANCE_VIOLATED if over_s > GOAL_TIME_TOLERANCE_S else None
