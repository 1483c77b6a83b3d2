"""The simulator: MuJoCo at 1 kHz in real time, with the controller manager inside, as with gz_ros2_control.

Trajectories are quintic between points, as in ros2_controllers. The controller knows neither DDS nor clocks. Every
second step is a control cycle. Publishes `/clock` each step and `/joint_states` each cycle.

Tracepoints: ``ldos:sim_step``, ``ldos:control_cycle``.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, NamedTuple

import mujoco
import numpy as np
from scipy.interpolate import BPoly

from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.robot.dds.action import ActionServer, GoalStatus, ServerGoal
from pytest_ldos.robot.dds.emission import emit
from pytest_ldos.robot.dds.endpoint import CLOCK, default
from pytest_ldos.robot.dds.node import Context, Node, run_node
from pytest_ldos.robot.stack.embedded.panda import (
    CONTROLLER_ACTION,
    CONTROLLER_ACTION_TYPE,
    Joints,
    Panda,
    TimedPath,
    from_message,
    load_panda,
    to_time,
)

PATH_TOLERANCE_RAD: Final = 0.2
GOAL_TOLERANCE_RAD: Final = 0.01
STOPPED_VELOCITY_RAD_S: Final = 0.01
GOAL_TIME_TOLERANCE_S: Final = 1.0


class TrajectoryResult(IntEnum):  # control_msgs/action/FollowJointTrajectory
    SUCCESSFUL = 0
    INVALID_GOAL = -1
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class Command(NamedTuple):
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

    def at(self, time_s: float) -> Command:
        if time_s >= self.duration_s:
            return Command(self._end, np.zeros_like(self._end))
        return Command(self._position(time_s), self._velocity(time_s))


class TrajectoryController:
    def __init__(self, position: Joints) -> None:
        self._hold = position.copy()
        self._rest = np.zeros_like(position)
        self._trajectory: Trajectory | None = None
        self._start_ns = 0
        self.command = Command(self._hold, self._rest)

    def follow(self, path: TimedPath, now_ns: int) -> None:
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
        self.command = self._trajectory.at(elapsed_s)
        result = self._judge(elapsed_s, np.abs(self.command.position - position).max(), np.abs(velocity).max())
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


STEP_NS: Final = NS_PER_MS
MONITOR_PERIOD_NS: Final = 50 * NS_PER_MS
"""Period of the trajectory action's monitor: `action_monitor_rate` of the joint trajectory controller is 20 Hz."""

_SWITCH_INTERVAL_S: Final = 0.0002  # longest time for which another thread may hold the interpreter lock


class Arm:
    def __init__(self, panda: Panda) -> None:
        self._model = panda.model
        self._data = mujoco.MjData(panda.model)
        self._data.qpos[:] = panda.ready
        self._joints = len(panda)
        self.write(panda.ready, np.zeros_like(panda.ready))
        mujoco.mj_forward(self._model, self._data)

    def step(self) -> None:
        mujoco.mj_step(self._model, self._data)

    def read(self) -> tuple[Joints, Joints, Joints]:
        """Returns position, velocity and torque of each joint."""
        return self._data.qpos.copy(), self._data.qvel.copy(), self._data.qfrc_actuator.copy()

    def write(self, position: Joints, velocity: Joints) -> None:
        self._data.ctrl[: self._joints] = position
        self._data.ctrl[self._joints :] = velocity


class ControllerManager:
    def __init__(self, node: Node, arm: Arm, panda: Panda, *, transport_delay_s: float = 0.0) -> None:
        self._arm = arm
        self._panda = panda
        self._controller = TrajectoryController(panda.ready)
        self._joint_states = node.create_publisher(
            "sensor_msgs/msg/JointState", "/joint_states", delay_s=transport_delay_s
        )
        self._cycle = 0
        self._sim_time_ns = 0
        self._lock = threading.Lock()
        self._on_end: Callable[[TrajectoryResult], None] = lambda _: None

    def follow(self, path: TimedPath, on_end: Callable[[TrajectoryResult], None]) -> None:
        """Begins a trajectory; `on_end` is called on the simulation thread."""
        with self._lock:
            self._controller.follow(path, self._sim_time_ns)
            self._on_end = on_end

    def hold(self) -> None:
        with self._lock:
            self._controller.hold()

    def update(self, sim_time_ns: int) -> None:
        emit.control_cycle(self._cycle, sim_time_ns, sim_time_ns - self._sim_time_ns)
        self._cycle += 1
        position, velocity, torque = self._arm.read()
        with self._lock:
            self._sim_time_ns = sim_time_ns
            result = self._controller.update(sim_time_ns, position, velocity)
            command = self._controller.command
        self._arm.write(*command)
        if result is not None:
            self._on_end(result)
        state = default(
            "sensor_msgs/msg/JointState",
            header=default("std_msgs/msg/Header", stamp=to_time(sim_time_ns)),
            name=list(self._panda.joint_names),
            position=position,
            velocity=velocity,
            effort=torque,
        )
        self._joint_states.publish(state)


class SimulationLoop:
    """Steps the arm in real time on a separate thread.

    A late step makes the next one early, so that the mean rate is kept. A delay of a whole step or more is not caught
    up, and shows in the real-time factor.
    """

    def __init__(self, node: Node, arm: Arm, manager: ControllerManager, control_rate_hz: float) -> None:
        self._arm = arm
        self._manager = manager
        self._control_period_ns = NS_PER_S / control_rate_hz
        self._clock = node.create_publisher("rosgraph_msgs/msg/Clock", "/clock", qos=CLOCK)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="simulation")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        step = 0
        control_due_ns = 0.0
        due_ns = time.monotonic_ns()
        while not self._stopping.is_set():
            due_ns += STEP_NS
            left_ns = due_ns - time.monotonic_ns()
            if left_ns > 0:
                time.sleep(left_ns / NS_PER_S)
            elif left_ns <= -STEP_NS:
                due_ns -= left_ns  # it is long past: go on from now
            sim_time_ns = step * STEP_NS
            emit.sim_step(step, sim_time_ns)
            if sim_time_ns >= control_due_ns:
                self._manager.update(sim_time_ns)
                control_due_ns += self._control_period_ns
            self._arm.step()
            self._clock.publish(default("rosgraph_msgs/msg/Clock", clock=to_time(sim_time_ns)))
            step += 1


class TrajectoryAction:
    """The controller's action server: one goal at a time; a new goal replaces the old one.

    As in the joint trajectory controller, a monitor timer that starts with the goal detects its end: results are sent
    on its 50 ms grid.
    """

    def __init__(self, node: Node, panda: Panda, manager: ControllerManager) -> None:
        self._panda = panda
        self._manager = manager
        self._goal: ServerGoal | None = None
        self._result: TrajectoryResult | None = None
        self._server = ActionServer(
            node, CONTROLLER_ACTION_TYPE, CONTROLLER_ACTION, on_goal=self._begin, on_cancel=self._cancel
        )
        self._monitor = node.create_timer(MONITOR_PERIOD_NS, self.monitor)

    def monitor(self) -> None:
        if self._goal is None:
            return
        if self._result is None:
            self._goal.publish_feedback(joint_names=list(self._panda.joint_names))
            return
        is_success = self._result is TrajectoryResult.SUCCESSFUL
        self._end(GoalStatus.SUCCEEDED if is_success else GoalStatus.ABORTED, self._result, self._result.name.lower())

    def _begin(self, goal: ServerGoal) -> bool:
        if tuple(goal.goal.trajectory.joint_names) != self._panda.joint_names:
            return False
        try:
            path = from_message(goal.goal.trajectory)
        except ValueError:
            return False
        self._end(GoalStatus.ABORTED, TrajectoryResult.INVALID_GOAL, "replaced by another goal")
        self._goal = goal
        self._manager.follow(path, lambda result: self._note(goal, result))
        self._monitor.restart()
        return True

    def _note(self, goal: ServerGoal, result: TrajectoryResult) -> None:
        """Called on the simulation thread."""
        if goal is self._goal:
            self._result = result

    def _cancel(self, goal: ServerGoal) -> None:
        if goal is self._goal:
            self._manager.hold()
            self._end(GoalStatus.CANCELED, TrajectoryResult.SUCCESSFUL, "cancelled")

    def _end(self, status: GoalStatus, result: TrajectoryResult, reason: str) -> None:
        goal, self._goal, self._result = self._goal, None, None
        if goal is not None:
            goal.finish(status, error_code=int(result), error_string=reason)


def build(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    """Parameters: ``control_rate_hz``, ``transport_delay_ms`` (a fault to plant)."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    node = Node(context, "simulator")
    panda = load_panda()
    arm = Arm(panda)
    manager = ControllerManager(node, arm, panda, transport_delay_s=parameters["transport_delay_ms"] / 1000)
    TrajectoryAction(node, panda, manager)
    loop = SimulationLoop(node, arm, manager, parameters["control_rate_hz"])
    loop.start()
    return loop.stop


if __name__ == "__main__":
    run_node("simulator", build)
