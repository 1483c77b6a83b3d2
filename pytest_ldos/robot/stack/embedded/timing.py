"""Time parameterization of paths: TOPP-RA under velocity and acceleration limits."""

from __future__ import annotations

from typing import Final

import numpy as np

from pytest_ldos.robot.stack.embedded.model import Panda
from pytest_ldos.robot.stack.embedded.planning import Waypoints
from pytest_ldos.robot.stack.embedded.timed_path import TimedPath
from pytest_ldos.robot.stack.embedded.without_plots import (
    AbstractGeometricPath,
    SplineInterpolator,
    algorithm,
    constraint,
)

_SAMPLE_S: Final = 0.1
"""Time between trajectory points: MoveIt's `resample_dt`."""

_GRID_POINTS: Final = 101


def time_path(
    panda: Panda, waypoints: Waypoints, *, velocity_scaling: float, acceleration_scaling: float
) -> TimedPath | None:
    """Returns the fastest motion along the path within the scaled limits, or ``None`` if there is none.

    Source: H. Pham, Q.-C. Pham, "A New Approach to Time-Optimal Path Parameterization Based
    on Reachability Analysis", IEEE T-RO 34(3), 2018 (package `toppra`).
    """
    lengths = np.linalg.norm(np.diff(waypoints, axis=0), axis=1)
    if lengths.sum() == 0.0:
        return _standstill(waypoints)
    stations = np.concatenate([[0.0], np.cumsum(lengths)])
    path = SplineInterpolator(stations, waypoints)
    velocity = velocity_scaling * panda.velocity_limit
    acceleration = acceleration_scaling * panda.acceleration_limit
    limits = [
        constraint.JointVelocityConstraint(np.stack([-velocity, velocity], axis=1)),
        constraint.JointAccelerationConstraint(np.stack([-acceleration, acceleration], axis=1)),
    ]
    grid = np.linspace(0.0, stations[-1], _GRID_POINTS)
    solver = algorithm.TOPPRA(limits, path, gridpoints=grid, parametrizer="ParametrizeConstAccel")
    trajectory = solver.compute_trajectory()
    return None if trajectory is None else _sample(trajectory)


def _sample(trajectory: AbstractGeometricPath) -> TimedPath:
    count = max(2, round(trajectory.duration / _SAMPLE_S) + 1)
    times = np.linspace(0.0, trajectory.duration, count)
    return TimedPath(times, trajectory(times), trajectory(times, 1), trajectory(times, 2))


def _standstill(waypoints: Waypoints) -> TimedPath:
    rest = np.zeros_like(waypoints[[0, -1]])
    return TimedPath(np.array([0.0, _SAMPLE_S]), waypoints[[0, -1]], rest, rest)
