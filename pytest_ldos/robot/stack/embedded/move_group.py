"""The planner's node: MoveIt's `move_group` action over OMPL, TOPP-RA and our controller.

It has MoveIt's feedback states (``PLANNING``, ``MONITOR``, ``IDLE``), limits and error codes. The objects of a goal's
``planning_scene_diff`` are its obstacles, set up before ``PLANNING``; without any, those of the model are.

Tracepoints: ``ldos:cpu_speed``, on the planning thread just before ``PLANNING``.
"""

from __future__ import annotations

import math
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from ompl import base, geometric, util

from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.host.cpu import time_fixed_work
from pytest_ldos.robot.dds.action import ActionClient, ActionServer, GoalStatus, IntegerParameters, ServerGoal
from pytest_ldos.robot.dds.emission import emit
from pytest_ldos.robot.dds.endpoint import Message, default
from pytest_ldos.robot.dds.node import Context, Node, run_node
from pytest_ldos.robot.stack.embedded.panda import (
    CONTROLLER_ACTION,
    CONTROLLER_ACTION_TYPE,
    FAILURE_PARAMETER,
    GROUP,
    MOVE_ACTION,
    MOVE_ACTION_TYPE,
    SEED_PARAMETER,
    Failed,
    Joints,
    Kinematics,
    Panda,
    TimedPath,
    load_panda,
    to_goal,
    to_message,
    to_start,
)
from pytest_ldos.robot.stack.goals import ErrorCode, Goal

ALLOWED_START_TOLERANCE_RAD: Final = 0.01
DURATION_SCALING: Final = 1.2
DURATION_MARGIN_S: Final = 0.5
"""Limits of MoveIt's trajectory execution manager."""

_PLANTED_ABORT: Final = 0.5  # fraction of the trajectory's duration at which a planted fault ends it

_BYTES_PER_MB: Final = 1_000_000
_IK_ATTEMPTS: Final = 30
_LARGEST_SEED: Final = 2**31 - 1
_WATCH_PERIOD_NS: Final = 100 * NS_PER_MS

_LONGEST_STOP_S: Final = 1.0
_STILL_STATES: Final = 3
_STILL_RAD: Final = 1e-3  # largest difference between two joint states of an arm at rest


Waypoints = npt.NDArray[np.float64]
"""Joint positions along a path; shape ``(n, 7)``, n ≥ 2."""

_SPACING_RAD: Final = 0.1
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
    planner: str = "",
) -> Waypoints | None:
    """Returns waypoints, or ``None`` if none were found in time; equal seeds (> 0) and states give equal paths."""
    util.setLogLevel(util.LogLevel.LOG_NONE)
    util.RNG.setSeed(seed)
    joints = range(len(panda))
    space, bounds = base.RealVectorStateSpace(len(panda)), base.RealVectorBounds(len(panda))
    for index in joints:
        bounds.setLow(index, float(panda.lower[index]))
        bounds.setHigh(index, float(panda.upper[index]))
    space.setBounds(bounds)
    setup = geometric.SimpleSetup(space)
    setup.setStateValidityChecker(lambda state: not is_colliding([state[joint] for joint in joints]))
    information = setup.getSpaceInformation()
    information.setStateValidityCheckingResolution(_LONGEST_VALID_SEGMENT)
    setup.setStartAndGoalStates(_to_state(information, start), _to_state(information, goal))
    setup.setPlanner(planner_of(planner)(information))
    # This condition reads the clock itself. Given a number, OMPL would start a thread to poll
    # it and wait up to a millisecond for its end, which is noise in T1.
    in_time = base.timedPlannerTerminationCondition(time_limit_s)
    setup.solve(in_time)
    if not setup.haveExactSolutionPath():
        return None
    setup.simplifySolution(in_time)
    return np.array([[state[joint] for joint in joints] for state in setup.getSolutionPath().getStates()])


_SUFFIX: Final = "kConfigDefault"  # of the names in MoveIt's configurations


def planner_of(name: str) -> Callable[[Any], Any]:
    """OMPL's planner of a name such as ``RRTConnect`` or ``RRTConnectkConfigDefault``; raises `Failed` for another."""
    found: Callable[[Any], Any] | None = getattr(geometric, name.removesuffix(_SUFFIX) or "RRTConnect", None)
    if not (isinstance(found, type) and issubclass(found, base.Planner)):
        raise Failed(ErrorCode.FAILURE, f"there is no planner '{name}' (there is RRTConnect, RRTstar, …, as in OMPL)")
    return found


def fill_in(waypoints: Waypoints) -> Waypoints:
    """Adds waypoints on the straight lines between others, so that a spline among obstacles hardly leaves them."""
    lines = [
        np.linspace(one, other, math.ceil(np.linalg.norm(other - one) / _SPACING_RAD), endpoint=False)
        for one, other in pairwise(waypoints)
    ]
    return np.vstack([*lines, waypoints[-1:]])


def _to_state(information: Any, joints: Joints) -> Any:
    state = information.allocState()
    for index, value in enumerate(joints.tolist()):
        state[index] = value
    return state


@contextmanager
def _unneeded() -> Iterator[None]:
    """Replaces matplotlib by a stand-in while libraries import it, unless it is already imported."""
    if "matplotlib" in sys.modules:
        yield
        return
    plots, package = ModuleType("matplotlib.pyplot"), ModuleType("matplotlib")
    package.pyplot = plots  # type: ignore[attr-defined]
    stand_ins = {each.__name__: each for each in (package, plots)}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]


with _unneeded():
    from toppra import SplineInterpolator, algorithm, constraint


_SAMPLE_S: Final = 0.1  # MoveIt's `resample_dt`
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
        rest = np.zeros_like(waypoints[[0, -1]])
        return TimedPath(np.array([0.0, _SAMPLE_S]), waypoints[[0, -1]], rest, rest)
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
    if trajectory is None:
        return None
    times = np.linspace(0.0, trajectory.duration, max(2, round(trajectory.duration / _SAMPLE_S) + 1))
    return TimedPath(times, trajectory(times), trajectory(times, 1), trajectory(times, 2))


def scaling_of(requested: float) -> float:
    """The requested scaling, or 1 if it is not above 0 and at most 1, as in MoveIt: 0 is the message's default."""
    return requested if 0 < requested <= 1 else 1.0


@dataclass(frozen=True)
class Plan:
    path: TimedPath
    planning_time_s: float


class Planner:
    def __init__(self, panda: Panda, *, planning_delay_s: float = 0.0, planning_delay_share: float = 0.0) -> None:
        self._panda = panda
        self._kinematics = Kinematics(panda)
        self._delay_s = planning_delay_s
        self._delay_share = planning_delay_share

    def plan(
        self, goal: Goal, request: Message, start: Joints, seed: int, *, kinematics: Kinematics | None = None
    ) -> Plan:
        """Plans a path among the model's or `kinematics`' obstacles; raises `Failed`, which has MoveIt's code."""
        began = time.monotonic()
        kinematics = kinematics or self._kinematics
        if contact := kinematics.contact(start):
            raise Failed(ErrorCode.START_STATE_IN_COLLISION, f"its start is in collision: {contact}")
        target = self._target(goal, start, seed, kinematics)
        waypoints = plan_path(
            self._panda,
            start,
            target,
            is_colliding=kinematics.is_colliding,
            seed=seed,
            time_limit_s=request.allowed_planning_time,
            planner=request.planner_id,
        )
        if waypoints is None:
            raise Failed(ErrorCode.PLANNING_FAILED, "no path was found in the allowed planning time")
        path = time_path(
            self._panda,
            waypoints if kinematics is self._kinematics else fill_in(waypoints),
            velocity_scaling=scaling_of(request.max_velocity_scaling_factor),
            acceleration_scaling=scaling_of(request.max_acceleration_scaling_factor),
        )
        if path is None:
            raise Failed(ErrorCode.INVALID_MOTION_PLAN, "the path cannot be followed within the limits")
        if any(kinematics.is_colliding(joints) for joints in path.positions):  # as MoveIt's solution validator
            raise Failed(ErrorCode.INVALID_MOTION_PLAN, "the timed path leads through a collision")
        time.sleep(self._delay_s + self._delay_share * (time.monotonic() - began))
        return Plan(path, time.monotonic() - began)

    def _target(self, goal: Goal, start: Joints, seed: int, kinematics: Kinematics) -> Joints:
        if goal.joints is not None:
            joints = np.array([goal.joints[name] for name in self._panda.joint_names])
            if np.any(joints < self._panda.lower) or np.any(joints > self._panda.upper):
                raise Failed(ErrorCode.INVALID_GOAL_CONSTRAINTS, "the goal is beyond the joint limits")
            if contact := kinematics.contact(joints):
                raise Failed(ErrorCode.GOAL_IN_COLLISION, f"its goal is in collision: {contact}")
            return joints
        assert goal.pose is not None
        found = kinematics.inverse(goal.pose, start, rng=np.random.default_rng(seed), attempts=_IK_ATTEMPTS)
        if found is None:
            raise Failed(ErrorCode.NO_IK_SOLUTION, "no joints bring the tip to the goal without a collision")
        return found


class Leak:
    """A planted fault that leaks memory each time; 0 MB leaks nothing."""

    def __init__(self, megabytes: float) -> None:
        self._size = round(megabytes * _BYTES_PER_MB)
        self._kept: list[bytes] = []

    def leak(self) -> None:
        if self._size:
            self._kept.append(b"\1" * self._size)  # written to, so that each page is allocated


class MoveGroup:
    """The node: one goal at a time, planned and executed on a separate thread; `leak_mb` is a planted fault."""

    def __init__(self, node: Node, panda: Panda, planner: Planner, *, leak_mb: float = 0.0) -> None:
        self._leak = Leak(leak_mb)
        self._node = node
        self._panda = panda
        self._planner = planner
        self._state: Joints | None = None
        self._state_arrived = threading.Event()
        self._execution: Execution | None = None
        self._busy = False
        self._parameters = IntegerParameters(node, (SEED_PARAMETER, FAILURE_PARAMETER))
        node.create_subscription("sensor_msgs/msg/JointState", "/joint_states", self.on_joint_state)
        self._controller = ActionClient(node, CONTROLLER_ACTION_TYPE, CONTROLLER_ACTION)
        self._server: ActionServer | None = None
        node.create_timer(_WATCH_PERIOD_NS, self.watch)

    def on_joint_state(self, state: Message) -> None:
        self._state = state.position
        self._state_arrived.set()

    def watch(self) -> None:
        """Offers the action once the controller and the first joint state are available."""
        if self._server is None and self._state_arrived.is_set() and self._controller.server_is_ready():
            self._server = ActionServer(
                self._node, MOVE_ACTION_TYPE, MOVE_ACTION, on_goal=self._begin, on_cancel=self._cancel
            )

    def _begin(self, goal: ServerGoal) -> bool:
        if self._busy:
            return False
        self._busy = True
        self._execution = Execution(self._controller)
        threading.Thread(target=self._run, args=(goal, self._execution), name="move_group goal", daemon=True).start()
        return True

    def _cancel(self, goal: ServerGoal) -> None:
        if self._execution is not None:
            self._execution.cancel()

    def _run(self, goal: ServerGoal, execution: Execution) -> None:
        plan: Plan | None = None
        try:
            objects = goal.goal.planning_options.planning_scene_diff.world.collision_objects
            kinematics = Kinematics(load_panda(objects)) if objects else None
            emit.cpu_speed(time_fixed_work())
            goal.publish_feedback(state="PLANNING")
            plan = self._plan(goal.goal, kinematics)
            self._fail_if_planted()
            if not goal.goal.planning_options.plan_only:
                goal.publish_feedback(state="MONITOR")
                self._execute(goal, execution, plan.path)
            goal.publish_feedback(state="IDLE")
            self._finish(goal, GoalStatus.SUCCEEDED, ErrorCode.SUCCESS, "", plan)
        except Failed as failure:
            status = GoalStatus.CANCELED if failure.code == ErrorCode.PREEMPTED else GoalStatus.ABORTED
            self._finish(goal, status, failure.code, str(failure), plan)
        except Exception as error:  # noqa: BLE001 - without a result, the client would wait until its timeout
            traceback.print_exc()
            reason = f"move_group cannot plan this: {type(error).__name__}: {error}"
            self._finish(goal, GoalStatus.ABORTED, ErrorCode.FAILURE, reason, plan)

    def _finish(self, goal: ServerGoal, status: GoalStatus, code: int, reason: str, plan: Plan | None) -> None:
        self._busy = False
        error = default("moveit_msgs/msg/MoveItErrorCodes", val=code, message=reason, source="embedded move_group")
        if plan is None:
            goal.finish(status, error_code=error)
            return
        trajectory = default(
            "moveit_msgs/msg/RobotTrajectory", joint_trajectory=to_message(plan.path, self._panda.joint_names)
        )
        goal.finish(status, error_code=error, planned_trajectory=trajectory, planning_time=plan.planning_time_s)

    def _plan(self, goal: Message, kinematics: Kinematics | None) -> Plan:
        request = goal.request
        if request.group_name != GROUP:
            raise Failed(ErrorCode.INVALID_GROUP_NAME, f"there is no group '{request.group_name}' (there is {GROUP})")
        wanted = to_goal(request.goal_constraints, self._panda.joint_names)
        start = to_start(request.start_state, self._panda.joint_names)
        start = self._present_state() if start is None else start
        seed = self._parameters[SEED_PARAMETER]
        if seed is None:
            seed = random.SystemRandom().randint(1, _LARGEST_SEED)
        return self._planner.plan(wanted, request, start, seed, kinematics=kinematics)

    def _fail_if_planted(self) -> None:
        if self._parameters[FAILURE_PARAMETER] == ErrorCode.PLANNING_FAILED:
            raise Failed(ErrorCode.PLANNING_FAILED, "no path was found (a planted fault)")

    def _present_state(self) -> Joints:
        self._state_arrived.clear()
        if not self._state_arrived.wait(timeout=1.0) or self._state is None:
            raise Failed(ErrorCode.INVALID_ROBOT_STATE, "no joint state arrived within a second")
        return self._state

    def _execute(self, goal: ServerGoal, execution: Execution, path: TimedPath) -> None:
        self._leak.leak()
        deviation = float(np.abs(self._present_state() - path.positions[0]).max())
        if deviation > ALLOWED_START_TOLERANCE_RAD:
            raise Failed(ErrorCode.CONTROL_FAILED, f"the arm is {deviation:.3f} rad from where the trajectory begins")
        message = default(
            "control_msgs/action/FollowJointTrajectory_Goal", trajectory=to_message(path, self._panda.joint_names)
        )
        self._node.executor.post(lambda: execution.begin(goal.goal_id, message))
        if self._parameters[FAILURE_PARAMETER] == ErrorCode.CONTROL_FAILED:
            execution.abort_after(path.duration_s * _PLANTED_ABORT)
        try:
            execution.wait(path.duration_s * DURATION_SCALING + DURATION_MARGIN_S)
        except Failed:
            self._await_standstill()
            raise

    def _await_standstill(self) -> None:
        """Waits for the robot to stop, as MoveIt does: the next path is planned from where the arm comes to rest."""
        deadline = time.monotonic() + _LONGEST_STOP_S
        still = 0
        try:
            before = self._present_state()
            while still < _STILL_STATES and time.monotonic() < deadline:
                state = self._present_state()
                still = still + 1 if float(np.abs(state - before).max()) < _STILL_RAD else 0
                before = state
        except Failed:
            return  # joint states have ended: the failure already raised is the better explanation


class Execution:
    def __init__(self, controller: ActionClient) -> None:
        self._controller = controller
        self._changed = threading.Condition()
        self._goal_id = ""
        self._failure: Failed | None = None
        self._is_done = False

    def begin(self, goal_id: str, message: Message) -> None:
        """Sends the trajectory unless it was cancelled before; runs on the executor's thread."""
        with self._changed:
            if self._is_done:
                return
            # An id that differs from that of the planner's goal.
            self._goal_id = bytes(byte ^ 0xFF for byte in bytes.fromhex(goal_id)).hex()
            self._controller.send_goal(
                self._goal_id, message, on_response=self._answered, on_feedback=lambda _: None, on_result=self._ended
            )

    def cancel(self) -> None:
        self._end(Failed(ErrorCode.PREEMPTED, "cancelled"))

    def abort_after(self, seconds: float) -> None:
        """Plants a fault: cancels the controller's goal after `seconds`, unless it has ended; reports it as aborted."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_done, timeout=seconds):
                self._controller.cancel_goal(self._goal_id)
                reason = "the controller ended with aborted: path_tolerance_violated (a planted fault)"
                self._failure, self._is_done = Failed(ErrorCode.CONTROL_FAILED, reason), True

    def wait(self, limit_s: float) -> None:
        """Returns when the trajectory has been followed; raises `Failed` otherwise."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_done, timeout=limit_s):
                self._failure = Failed(ErrorCode.TIMED_OUT, f"the controller took longer than {limit_s:.1f} s")
        if self._failure is None:
            return
        if self._goal_id and self._failure.code != ErrorCode.CONTROL_FAILED:
            self._controller.cancel_goal(self._goal_id)
        raise self._failure

    def _answered(self, accepted: bool) -> None:
        if not accepted:
            self._end(Failed(ErrorCode.CONTROL_FAILED, "the controller refused the trajectory"))

    def _ended(self, status: GoalStatus, result: Message) -> None:
        reason = f"the controller ended with {status.name.lower()}: {result.error_string}"
        self._end(None if status is GoalStatus.SUCCEEDED else Failed(ErrorCode.CONTROL_FAILED, reason))

    def _end(self, failure: Failed | None) -> None:
        with self._changed:
            if not self._is_done:
                self._failure = failure
                self._is_done = True
                self._changed.notify()


def build(context: Context, parameters: dict[str, Any]) -> None:
    """Parameters: ``planning_delay_ms``, ``planning_delay_share``, ``leak_mb`` (faults)."""
    panda = load_panda()
    planner = Planner(
        panda,
        planning_delay_s=parameters["planning_delay_ms"] / 1000,
        planning_delay_share=parameters["planning_delay_share"],
    )
    MoveGroup(Node(context, "move_group"), panda, planner, leak_mb=parameters.get("leak_mb", 0.0))


if __name__ == "__main__":
    run_node("move_group", build)
