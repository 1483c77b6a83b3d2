"""Collision-free paths in joint space: OMPL's RRTConnect, then its path simplifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ompl import base, geometric, util

from pytest_ldos.robot.stack.embedded.model import Joints, Panda

Waypoints = npt.NDArray[np.float64]
"""Joint positions along a path; shape ``(n, 7)``, n ≥ 2."""

_LONGEST_VALID_SEGMENT: Final = 0.005
"""Distance between collision checks as a fraction of the space's extent: MoveIt's value for the Panda."""


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
