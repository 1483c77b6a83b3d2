"""Timed paths as functions of time: quintic between points, as in ros2_controllers."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BPoly

from pytest_ldos.robot.stack.embedded.model import Joints
from pytest_ldos.robot.stack.embedded.timed_path import TimedPath


class Trajectory:
    """Desired joint positions by time since the start; at rest after the end."""

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
