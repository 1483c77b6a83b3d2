"""Messages between the nodes: timed paths, goals as MoveIt's constraints, names of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pytest_ldos.base.text import NS_PER_S, seconds_to_ns
from pytest_ldos.robot.dds.messages import Message, default
from pytest_ldos.robot.stack.embedded.kinematics import BASE_LINK, TIP_LINK
from pytest_ldos.robot.stack.goals import ErrorCode, Goal, Pose


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


def to_message(path: TimedPath, joint_names: Sequence[str]) -> Message:
    """Builds a `JointTrajectory` from a path."""
    points = [
        default(
            "trajectory_msgs/msg/JointTrajectoryPoint",
            positions=path.positions[index],
            velocities=path.velocities[index],
            accelerations=path.accelerations[index],
            time_from_start=_to_duration(float(time_s)),
        )
        for index, time_s in enumerate(path.times_s)
    ]
    return default("trajectory_msgs/msg/JointTrajectory", joint_names=list(joint_names), points=points)


def from_message(trajectory: Message) -> TimedPath:
    """Returns the path of a `JointTrajectory` whose points all have velocities and accelerations.

    Raises:
        ValueError: there are too few points, or they are out of order or incomplete.
    """
    points = trajectory.points
    times = np.array([duration_ns(point.time_from_start) for point in points]) / NS_PER_S
    if len(points) < 2 or np.any(np.diff(times) <= 0):
        raise ValueError("a trajectory needs two or more points in order of time")
    joints = len(trajectory.joint_names)
    if any(len(getattr(point, name)) != joints for point in points for name in _POINT_FIELDS):
        raise ValueError("every point needs a position, velocity and acceleration of every joint")
    return TimedPath(times, *(np.array([getattr(point, name) for point in points]) for name in _POINT_FIELDS))


_POINT_FIELDS = ("positions", "velocities", "accelerations")


def duration_ns(duration: Message) -> int:
    """Returns the nanoseconds of a `builtin_interfaces/Duration`."""
    return int(duration.sec) * NS_PER_S + int(duration.nanosec)


def _to_duration(time_s: float) -> Any:
    seconds, nanoseconds = divmod(seconds_to_ns(time_s), NS_PER_S)
    return default("builtin_interfaces/msg/Duration", sec=seconds, nanosec=nanoseconds)


CONTROLLER_ACTION: Final = "/panda_arm_controller/follow_joint_trajectory"
CONTROLLER_ACTION_TYPE: Final = "control_msgs/action/FollowJointTrajectory"
MOVE_ACTION: Final = "/move_action"
MOVE_ACTION_TYPE: Final = "moveit_msgs/action/MoveGroup"
SEED_PARAMETER: Final = "planner_seed"
FAILURE_PARAMETER: Final = "planted_failure"
"""Parameter that plants a fault: the error code with which the next goal ends; unset for none."""


_POSITION_TOLERANCE_M = 1e-4
_ROTATION_TOLERANCE_RAD = 1e-3
_SPHERE = 2


class RefusedGoal(Exception):
    """Constraints that this planner does not support.

    Attributes:
        code: MoveIt's error code for it.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def to_constraints(goal: Goal) -> Message:
    """Builds a `moveit_msgs/Constraints` that is satisfied at the goal."""
    if goal.joints is not None:
        joints = [_joint_constraint(name, value) for name, value in goal.joints.items()]
        return default("moveit_msgs/msg/Constraints", name=goal.name, joint_constraints=joints)
    assert goal.pose is not None
    return default(
        "moveit_msgs/msg/Constraints",
        name=goal.name,
        position_constraints=[_position_constraint(goal.link, goal.pose)],
        orientation_constraints=[_orientation_constraint(goal.link, goal.pose)],
    )


def _joint_constraint(name: str, value: float) -> Any:
    return default(
        "moveit_msgs/msg/JointConstraint",
        joint_name=name,
        position=value,
        tolerance_above=_ROTATION_TOLERANCE_RAD,
        tolerance_below=_ROTATION_TOLERANCE_RAD,
        weight=1.0,
    )


def _position_constraint(link: str, pose: Pose) -> Any:
    x, y, z = pose.position
    center = default(
        "geometry_msgs/msg/Pose",
        position=default("geometry_msgs/msg/Point", x=x, y=y, z=z),
        orientation=default("geometry_msgs/msg/Quaternion", w=1.0),
    )
    sphere = default("shape_msgs/msg/SolidPrimitive", type=_SPHERE, dimensions=np.array([_POSITION_TOLERANCE_M]))
    return default(
        "moveit_msgs/msg/PositionConstraint",
        header=default("std_msgs/msg/Header", frame_id=BASE_LINK),
        link_name=link,
        constraint_region=default("moveit_msgs/msg/BoundingVolume", primitives=[sphere], primitive_poses=[center]),
        weight=1.0,
    )


def _orientation_constraint(link: str, pose: Pose) -> Any:
    x, y, z, w = pose.orientation
    return default(
        "moveit_msgs/msg/OrientationConstraint",
        header=default("std_msgs/msg/Header", frame_id=BASE_LINK),
        link_name=link,
        orientation=default("geometry_msgs/msg/Quaternion", x=x, y=y, z=z, w=w),
        absolute_x_axis_tolerance=_ROTATION_TOLERANCE_RAD,
        absolute_y_axis_tolerance=_ROTATION_TOLERANCE_RAD,
        absolute_z_axis_tolerance=_ROTATION_TOLERANCE_RAD,
        weight=1.0,
    )


def to_robot_state(joints: Mapping[str, float] | None) -> Message:
    """Builds a `moveit_msgs/RobotState`, which without joints means the present state."""
    if joints is None:
        return default("moveit_msgs/msg/RobotState", is_diff=True)
    state = default(
        "sensor_msgs/msg/JointState", name=list(joints), position=np.array(list(joints.values()), dtype=np.float64)
    )
    return default("moveit_msgs/msg/RobotState", joint_state=state)


def to_start(state: Message, joint_names: Sequence[str]) -> npt.NDArray[np.float64] | None:
    """Returns the joints of a `RobotState`, or ``None`` for the present state.

    Raises:
        RefusedGoal: it names some joints, but not all of them.
    """
    values = dict(zip(state.joint_state.name, state.joint_state.position.tolist(), strict=False))
    if not values:
        return None
    if set(values) != set(joint_names):
        raise RefusedGoal(ErrorCode.INVALID_ROBOT_STATE, "a start state must name every joint of the arm")
    return np.array([values[name] for name in joint_names])


def to_goal(alternatives: Sequence[Message], joint_names: Sequence[str]) -> Goal:
    """Returns the goal of a `MotionPlanRequest`'s constraints.

    Raises:
        RefusedGoal: not exactly one set of constraints, or neither a complete pose of the tip
            nor a value for every joint.
    """
    if len(alternatives) != 1:
        raise RefusedGoal(ErrorCode.INVALID_GOAL_CONSTRAINTS, "exactly one set of goal constraints is planned for")
    wanted = alternatives[0]
    if wanted.joint_constraints:
        joints = {constraint.joint_name: constraint.position for constraint in wanted.joint_constraints}
        if set(joints) != set(joint_names):
            raise RefusedGoal(ErrorCode.INVALID_GOAL_CONSTRAINTS, "a joint goal must name every joint of the arm")
        return Goal(wanted.name, joints=joints)
    return Goal(wanted.name, pose=_to_pose(wanted))


def _to_pose(wanted: Message) -> Pose:
    if len(wanted.position_constraints) != 1 or len(wanted.orientation_constraints) != 1:
        raise RefusedGoal(ErrorCode.INVALID_GOAL_CONSTRAINTS, "a pose goal needs one position and one orientation")
    position, orientation = wanted.position_constraints[0], wanted.orientation_constraints[0]
    if {position.link_name, orientation.link_name} != {TIP_LINK}:
        raise RefusedGoal(ErrorCode.INVALID_LINK_NAME, f"only {TIP_LINK} can be given a pose")
    if len(position.constraint_region.primitive_poses) != 1:
        raise RefusedGoal(ErrorCode.INVALID_GOAL_CONSTRAINTS, "the position must be one primitive")
    point = position.constraint_region.primitive_poses[0].position
    turn = orientation.orientation
    return Pose((point.x, point.y, point.z), (turn.x, turn.y, turn.z, turn.w))
