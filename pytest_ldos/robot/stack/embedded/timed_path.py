"""Timed paths: trajectories as plain arrays, for every node, without a planner."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class TimedPath:
    """A trajectory with the content of a `trajectory_msgs/JointTrajectory`.

    Attributes:
        times_s: times since the start; shape ``(n,)``, the first is 0.
        positions, velocities, accelerations: rad, rad/s, rad/s²; shape ``(n, 7)``.
    """

    times_s: npt.NDArray[np.float64]
    positions: npt.NDArray[np.float64]
    velocities: npt.NDArray[np.float64]
    accelerations: npt.NDArray[np.float64]

    @property
    def duration_s(self) -> float:
        return float(self.times_s[-1])
