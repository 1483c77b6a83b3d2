"""Collision-free paths in joint space, timed under velocity and acceleration limits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ompl import base, geometric, util

from pytest_ldos.robot.stack.embedded.kinematics import Joints, Panda
from pytest_ldos.robot.stack.embedded.timed_path import TimedPath

Waypoints = npt.NDArray[np.float64]
"""Joint positions along a path; shape ``(n, 7)``, n ≥ 2."""

_LONGEST_VALID_SEGMENT: Final = 0.005
"""Distance between collision checks, as a fraction of the space's extent: MoveIt's value for the Panda."""


def plan_path(
    panda: Panda,
    start: Joints,
    goal: Joints,
    *,
    is_colliding: Callable[[list[float]], bool],
    seed: int,
    time_limit_s: float,
) -> Waypoints | None:
    """Returns waypoints from `start` to `goal`, or ``None`` if none were found in time.

    Args:
        is_colliding: returns True if the arm touches something at the given joints.
        seed: seed of OMPL's random numbers (> 0): equal seeds and states give equal paths.
    """
    util.setLogLevel(util.LogLevel.LOG_NONE)
    util.RNG.setSeed(seed)
    setup = geometric.SimpleSetup(_joint_space(panda))
    joints = range(len(panda))
    setup.setStateValidityChecker(lambda state: not is_colliding([state[joint] for joint in joints]))
    information = setup.getSpaceInformation()
    information.setStateValidityCheckingResolution(_LONGEST_VALID_SEGMENT)
    setup.setStartAndGoalStates(_to_state(information, start), _to_state(information, goal))
    setup.setPlanner(geometric.RRTConnect(information))
    # This condition reads the clock itself. Given a number, OMPL would start a thread to poll
    # it and wait up to a millisecond for its end, which is noise in T1.
    in_time = base.timedPlannerTerminationCondition(time_limit_s)
    setup.solve(in_time)
    if not setup.haveExactSolutionPath():
        return None
    setup.simplifySolution(in_time)
    return np.array([[state[joint] for joint in joints] for state in setup.getSolutionPath().getStates()])


def _joint_space(panda: Panda) -> Any:
    space = base.RealVectorStateSpace(len(panda))
    bounds = base.RealVectorBounds(len(panda))
    for index in range(len(panda)):
        bounds.setLow(index, float(panda.lower[index]))
        bounds.setHigh(index, float(panda.upper[index]))
    space.setBounds(bounds)
    return space


def _to_state(information: Any, joints: Joints) -> Any:
    state = information.allocState()
    for index, value in enumerate(joints.tolist()):
        state[index] = value
    return state


_PACKAGE = "matplotlib"


@contextmanager
def _unneeded() -> Iterator[None]:
    """Replaces matplotlib by a stand-in while libraries import it, unless it is already imported."""
    if _PACKAGE in sys.modules:
        yield
        return
    plots, package = ModuleType(f"{_PACKAGE}.pyplot"), ModuleType(_PACKAGE)
    package.pyplot = plots  # type: ignore[attr-defined]
    stand_ins = {_PACKAGE: package, plots.__name__: plots}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]


with _unneeded():
    from toppra import SplineInterpolator, algorithm, constraint
    from toppra.interpolator import AbstractGeometricPath

__all__ = ["AbstractGeometricPath", "SplineInterpolator", "algorithm", "constraint"]


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
