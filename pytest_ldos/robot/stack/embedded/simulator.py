"""The simulator: MuJoCo at 1 kHz in real time, with the controller manager inside.

As with gz_ros2_control, the simulator's loop updates the controllers: every second
step is a control cycle. Publishes `/clock` each step and `/joint_states` each cycle.

Tracepoints: ``ldos:sim_step``, ``ldos:control_cycle``.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import mujoco
import numpy as np

from pytest_ldos.base.text import NS_PER_MS, NS_PER_S
from pytest_ldos.robot.dds.action import ActionServer, GoalStatus, ServerGoal
from pytest_ldos.robot.dds.emission import emit
from pytest_ldos.robot.dds.endpoint import CLOCK
from pytest_ldos.robot.dds.messages import Message, default
from pytest_ldos.robot.dds.node import Context, Node, run_node
from pytest_ldos.robot.stack.embedded.controller import TrajectoryController, TrajectoryResult
from pytest_ldos.robot.stack.embedded.kinematics import Joints, Panda, load_panda
from pytest_ldos.robot.stack.embedded.timed_path import (
    CONTROLLER_ACTION,
    CONTROLLER_ACTION_TYPE,
    TimedPath,
    from_message,
)

STEP_NS: Final = NS_PER_MS
MONITOR_PERIOD_NS: Final = 50 * NS_PER_MS
"""Period of the trajectory action's monitor: `action_monitor_rate` of the joint trajectory controller is 20 Hz."""

_SWITCH_INTERVAL_S: Final = 0.0002
"""Longest time for which another thread may hold the interpreter lock."""


class Arm:
    """The simulated arm and its state."""

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
    """Reads the arm, updates the controller and writes the arm, once per control cycle."""

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
        """Runs one control cycle."""
        emit.control_cycle(self._cycle, sim_time_ns, sim_time_ns - self._sim_time_ns)
        self._cycle += 1
        position, velocity, torque = self._arm.read()
        with self._lock:
            self._sim_time_ns = sim_time_ns
            result = self._controller.update(sim_time_ns, position, velocity)
            command = self._controller.command
        self._arm.write(command.position, command.velocity)
        if result is not None:
            self._on_end(result)
        self._joint_states.publish(self._state(sim_time_ns, position, velocity, torque))

    def _state(self, sim_time_ns: int, position: Joints, velocity: Joints, torque: Joints) -> Message:
        header = default("std_msgs/msg/Header", stamp=to_time(sim_time_ns))
        names = list(self._panda.joint_names)
        return default(
            "sensor_msgs/msg/JointState", header=header, name=names, position=position, velocity=velocity, effort=torque
        )


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
            due_ns = _sleep_until(due_ns + STEP_NS)
            sim_time_ns = step * STEP_NS
            emit.sim_step(step, sim_time_ns)
            if sim_time_ns >= control_due_ns:
                self._manager.update(sim_time_ns)
                control_due_ns += self._control_period_ns
            self._arm.step()
            self._clock.publish(default("rosgraph_msgs/msg/Clock", clock=to_time(sim_time_ns)))
            step += 1


def _sleep_until(due_ns: int) -> int:
    """Sleeps until a monotonic time; returns it, or the present time if it is long past."""
    left_ns = due_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / NS_PER_S)
    return due_ns if left_ns > -STEP_NS else due_ns - left_ns


class TrajectoryAction:
    """The controller's action server: one goal at a time; a new goal replaces the old one.

    As in the joint trajectory controller, a monitor timer that starts with the goal detects
    its end: results are sent on its 50 ms grid.
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
        """Reports to the client that its goal is active, or its result."""
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
        """Notes the end of a trajectory; called on the simulation thread."""
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


def to_time(time_ns: int) -> Any:
    """Builds a `builtin_interfaces/Time`."""
    seconds, nanoseconds = divmod(time_ns, NS_PER_S)
    return default("builtin_interfaces/msg/Time", sec=seconds, nanosec=nanoseconds)


def build(context: Context, parameters: dict[str, Any]) -> Callable[[], None]:
    """Builds node `simulator`; parameters: ``control_rate_hz``, ``transport_delay_ms`` (a fault to plant)."""
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
