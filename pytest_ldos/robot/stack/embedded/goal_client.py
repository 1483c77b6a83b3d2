"""The goal client: sends one goal at a time, marks its phases in the trace, and reports its end.

Commands and events are JSON lines on standard input and output (`stack.lines`). A phase is marked when received.

Tracepoints: ``ldos:trial_begin``, ``ldos:phase``, ``ldos:plan``, ``ldos:trial_end``.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pytest_ldos.base.ros2 import Phase
from pytest_ldos.base.text import NS_PER_MS, seconds_to_ns
from pytest_ldos.robot.dds.action import ActionClient, ParameterClient
from pytest_ldos.robot.dds.emission import emit
from pytest_ldos.robot.dds.endpoint import Message, QosProfile, default
from pytest_ldos.robot.dds.node import Context, Node, Subscription, run_node
from pytest_ldos.robot.stack.embedded.panda import (
    FAILURE_PARAMETER,
    GROUP,
    MOVE_ACTION,
    MOVE_ACTION_TYPE,
    SEED_PARAMETER,
    Kinematics,
    duration_ns,
    load_panda,
    to_constraints,
    to_robot_state,
)
from pytest_ldos.robot.stack.goals import ErrorCode, Goal, PoseError
from pytest_ldos.robot.stack.lines import (
    Marks,
    MoveCommand,
    MoveReport,
    PlantedFailure,
    ReadyEvent,
    parse_command,
    write,
)

FAILURES: Final = {
    PlantedFailure.PLANNER: ErrorCode.PLANNING_FAILED,
    PlantedFailure.CONTROLLER: ErrorCode.CONTROL_FAILED,
}

_READY_POLL_NS: Final = 20 * NS_PER_MS
_CANCEL_GRACE_NS: Final = 1000 * NS_PER_MS
_FEEDBACK_PHASES: Final = {"PLANNING": Phase.PLANNING, "MONITOR": Phase.EXECUTING}


@dataclass(frozen=True)
class Planned:
    duration_ns: int
    points: int
    planning_time_s: float


def _planned(result: Message) -> Planned | None:
    points = result.planned_trajectory.joint_trajectory.points
    if not points:
        return None
    return Planned(duration_ns(points[-1].time_from_start), len(points), float(result.planning_time))


class Motion(Marks):
    def __init__(self, command: MoveCommand) -> None:
        super().__init__(id=command.goal_id, trial=command.trial, plan_only=command.plan_only)
        self.command = command
        self.deadline_ns = time.monotonic_ns() + seconds_to_ns(command.timeout_s)
        self.is_cancelled = False

    def end(self, error_code: int, planned: Planned | None) -> None:
        self.enter(Phase.RESULT)
        if self.is_marked and planned is not None:
            emit.plan(self.id, planned.duration_ns, planned.points)
        self.end_trial(error_code)


class GoalClient:
    def __init__(self, node: Node) -> None:
        self._node = node
        self._panda = load_panda()
        self._kinematics = Kinematics(self._panda)
        self._action = ActionClient(node, MOVE_ACTION_TYPE, MOVE_ACTION)
        self._parameters = ParameterClient(node, "move_group")
        # Read when a goal ends, so that samples cost nothing during the goal.
        self._latest_state = Subscription(
            node, "sensor_msgs/msg/JointState", "/joint_states", _unused, QosProfile(depth=1)
        )
        self._motion: Motion | None = None
        self._is_ready = False
        node.create_timer(_READY_POLL_NS, self.watch)

    def watch(self) -> None:
        """Reports when the stack is ready; cancels goals that take too long, and after a grace period reports them."""
        if not self._is_ready:
            servers = (self._action, self._parameters)
            self._is_ready = all(each.server_is_ready() for each in servers) and self._latest_state.matched() > 0
            if self._is_ready:
                write(ReadyEvent(plan_only=True))
        elif (motion := self._motion) is not None and time.monotonic_ns() > motion.deadline_ns:
            if motion.is_cancelled:
                self._report(motion, ErrorCode.TIMED_OUT, f"no result within {motion.command.timeout_s:.1f} s")
            else:
                motion.is_cancelled = True
                motion.deadline_ns += _CANCEL_GRACE_NS
                self._action.cancel_goal(motion.id)

    def move(self, command: MoveCommand) -> None:
        """Begins a goal: sets the planner's seed and the planted fault first, then sends the goal itself."""
        motion = self._motion = Motion(command)
        failure = FAILURES[PlantedFailure(command.failure)] if command.failure else None
        wanted = {SEED_PARAMETER: command.seed, FAILURE_PARAMETER: failure}
        self._parameters.set(wanted, lambda refused: self._begin(motion, refused))

    def _begin(self, motion: Motion, refused: Sequence[str]) -> None:
        motion.begin()
        if refused:
            self._report(motion, ErrorCode.FAILURE, f"move_group refused the goal's parameters: {'; '.join(refused)}")
        else:
            self._send(motion)

    def _send(self, motion: Motion) -> None:
        goal = default(
            f"{MOVE_ACTION_TYPE}_Goal",
            request=self._request(motion.command),
            planning_options=default("moveit_msgs/msg/PlanningOptions", plan_only=motion.command.plan_only),
        )
        motion.enter(Phase.GOAL_SENT)
        self._action.send_goal(
            motion.id,
            goal,
            on_response=lambda accepted: self._answered(motion, accepted),
            on_feedback=lambda feedback: self._fed_back(motion, feedback),
            on_result=lambda status, result: self._ended(motion, result),
        )

    def _request(self, command: MoveCommand) -> Message:
        return default(
            "moveit_msgs/msg/MotionPlanRequest",
            group_name=GROUP,
            pipeline_id="ompl",
            planner_id="RRTConnectkConfigDefault",
            num_planning_attempts=1,
            allowed_planning_time=command.planning_time_s,
            max_velocity_scaling_factor=command.velocity_scaling,
            max_acceleration_scaling_factor=command.acceleration_scaling,
            goal_constraints=[to_constraints(command.goal)],
            start_state=to_robot_state(command.start),
        )

    def _answered(self, motion: Motion, accepted: bool) -> None:
        if accepted:
            motion.enter(Phase.GOAL_ACCEPTED)
        else:
            self._report(motion, ErrorCode.FAILURE, "move_group refused the goal")

    def _fed_back(self, motion: Motion, feedback: Message) -> None:
        phase = _FEEDBACK_PHASES.get(feedback.state)
        if phase is not None and motion is self._motion:
            motion.enter(phase)

    def _ended(self, motion: Motion, result: Message) -> None:
        if motion is not self._motion:
            return
        code, reason = int(result.error_code.val), str(result.error_code.message)
        if motion.is_cancelled:
            code, reason = ErrorCode.TIMED_OUT, f"no result within {motion.command.timeout_s:.1f} s"
        self._report(motion, code, reason, _planned(result))

    def _report(self, motion: Motion, code: int, reason: str, planned: Planned | None = None) -> None:
        motion.end(code, planned)
        self._motion = None
        error = self._pose_error(motion.command.goal)
        write(
            MoveReport(
                goal_id=motion.id,
                error_code=code,
                message=reason,
                stamps_ns=motion.stamps,
                plan_duration_ns=planned.duration_ns if planned else None,
                plan_points=planned.points if planned else 0,
                planning_time_s=planned.planning_time_s if planned else 0.0,
                position_error_m=error.position_m if error else None,
                rotation_error_rad=error.rotation_rad if error else None,
            )
        )

    def _pose_error(self, goal: Goal) -> PoseError | None:
        """Difference of the tip's pose from the goal, by the last joint state; ``None`` without one."""
        state = self._latest_state.take()
        if state is None:
            return None
        wanted = goal.pose
        if wanted is None:
            assert goal.joints is not None
            wanted = self._kinematics.forward(np.array([goal.joints[name] for name in self._panda.joint_names]))
        return PoseError.between(wanted, self._kinematics.forward(state.position))


def _unused(message: Message) -> None:
    """Does nothing: the latest joint state is taken when it is needed, without a callback."""


def _read_commands(node: Node, client: GoalClient) -> None:
    """Posts commands to the executor's thread; the end of input ends the node."""
    for line in sys.stdin:
        command = parse_command(line)
        node.executor.post(lambda command=command: client.move(command))  # type: ignore[misc]
    node.executor.stop()


def build(context: Context, parameters: dict[str, Any]) -> None:
    node = Node(context, "ldos_goal_client")
    threading.Thread(target=_read_commands, args=(node, GoalClient(node)), name="commands", daemon=True).start()


if __name__ == "__main__":
    run_node("goal_client", build)
