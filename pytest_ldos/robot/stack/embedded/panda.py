"""The Panda: MuJoCo's model, kinematics and collision checks; timed paths and goals as messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import mujoco
import numpy as np
import numpy.typing as npt
from mujoco import minimize

from pytest_ldos.base.text import NS_PER_S, seconds_to_ns
from pytest_ldos.robot.dds.messages import Message, default
from pytest_ldos.robot.stack.goals import ErrorCode, Goal, Pose, PoseError

Joints = npt.NDArray[np.float64]
"""Joint values in the order of `Panda.joint_names`; shape ``(7,)``, radians."""

BASE_LINK: Final = "panda_link0"
TIP_LINK: Final = "panda_link8"
GROUP: Final = "panda_arm"


@dataclass(frozen=True)
class Panda:
    """The compiled model.

    Attributes:
        model: MuJoCo's model; every user creates its own `MjData`.
        lower, upper: joint limits, rad.
        velocity_limit, acceleration_limit: rad/s and rad/s².
        tip_site: MuJoCo's index of `panda_link8`.
    """

    model: mujoco.MjModel
    joint_names: tuple[str, ...]
    lower: Joints
    upper: Joints
    velocity_limit: Joints
    acceleration_limit: Joints
    ready: Joints
    tip_site: int

    def __len__(self) -> int:
        return len(self.joint_names)


def load_panda() -> Panda:
    xml = files("pytest_ldos.robot.stack.embedded").joinpath("panda.xml").read_text("utf-8")
    model = mujoco.MjModel.from_xml_string(xml)
    return Panda(
        model=model,
        joint_names=tuple(model.joint(index).name for index in range(model.njnt)),
        lower=model.jnt_range[:, 0].copy(),
        upper=model.jnt_range[:, 1].copy(),
        velocity_limit=model.numeric("velocity_limit").data.copy(),
        acceleration_limit=model.numeric("acceleration_limit").data.copy(),
        ready=model.numeric("ready").data.copy(),
        tip_site=model.site(TIP_LINK).id,
    )


_ROTATION_WEIGHT: Final = 0.3  # metres equivalent to one radian: about the length of the arm's wrist

_POSITION_TOLERANCE_M: Final = 1e-4
_ROTATION_TOLERANCE_RAD: Final = 1e-3
_MOST_ITERATIONS: Final = 50

Vector = npt.NDArray[np.float64]


class Kinematics:
    def __init__(self, panda: Panda) -> None:
        self._panda = panda
        self._model = panda.model
        self._data = mujoco.MjData(panda.model)

    def forward(self, joints: Joints) -> Pose:
        """Pose of `panda_link8` in `panda_link0`."""
        self._place(joints)
        x, y, z = self._data.site_xpos[self._panda.tip_site].tolist()
        qw, qx, qy, qz = self._tip_quaternion().tolist()
        return Pose((x, y, z), (qx, qy, qz, qw))

    def is_colliding(self, joints: Joints | list[float]) -> bool:
        """True if the arm touches itself, the floor or the obstacle."""
        self._data.qpos[:] = joints
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_collision(self._model, self._data)
        return bool(self._data.ncon > 0)

    def inverse(self, pose: Pose, start: Joints, *, rng: np.random.Generator, attempts: int) -> Joints | None:
        """Returns joints that bring the tip to `pose` without a collision, or ``None``.

        The first attempt starts at `start`, so that it finds the nearest solution; the others start at random joints.

        Source: box-constrained Gauss-Newton of `mujoco.minimize`, with MuJoCo's Jacobians.
        """
        lower, upper = self._panda.lower, self._panda.upper
        for attempt in range(attempts):
            joints = self._descend(pose, rng.uniform(lower, upper) if attempt else np.clip(start, lower, upper))
            error = PoseError.between(pose, self.forward(joints))
            is_reached = error.position_m <= _POSITION_TOLERANCE_M and error.rotation_rad <= _ROTATION_TOLERANCE_RAD
            if is_reached and not self.is_colliding(joints):
                return joints
        return None

    def _descend(self, pose: Pose, first_guess: Joints) -> Joints:
        position = np.array(pose.position)
        quaternion = np.roll(np.array(pose.orientation), 1)
        solution, _ = minimize.least_squares(
            first_guess[:, None],
            lambda columns: np.stack([self._residual(position, quaternion, joints) for joints in columns.T], axis=1),
            [self._panda.lower[:, None], self._panda.upper[:, None]],
            jacobian=lambda column, _: self._jacobian(quaternion, column[:, 0]),
            max_iter=_MOST_ITERATIONS,
            verbose=minimize.Verbosity.SILENT,
        )
        return np.asarray(solution)[:, 0]

    def _residual(self, position: Vector, quaternion: Vector, joints: Joints) -> Vector:
        self._place(joints)
        rotation = np.empty(3)
        mujoco.mju_subQuat(rotation, quaternion, self._tip_quaternion())
        offset = position - self._data.site_xpos[self._panda.tip_site]
        return np.concatenate([offset, _ROTATION_WEIGHT * rotation])

    def _jacobian(self, quaternion: Vector, joints: Joints) -> Vector:
        self._place(joints)
        linear = np.empty((3, self._model.nv))
        angular = np.empty((3, self._model.nv))
        mujoco.mj_jacSite(self._model, self._data, linear, angular, self._panda.tip_site)
        by_goal = np.empty(9)
        by_tip = np.empty(9)
        mujoco.mjd_subQuat(quaternion, self._tip_quaternion(), by_goal, by_tip)
        in_tip_frame = self._data.site_xmat[self._panda.tip_site].reshape(3, 3).T @ angular
        return np.vstack([-linear, _ROTATION_WEIGHT * by_tip.reshape(3, 3) @ in_tip_frame])

    def _place(self, joints: Joints) -> None:
        self._data.qpos[:] = joints
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_comPos(self._model, self._data)

    def _tip_quaternion(self) -> Vector:
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, self._data.site_xmat[self._panda.tip_site])
        return quaternion


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
    points = [
        default(
            "trajectory_msgs/msg/JointTrajectoryPoint",
            positions=path.positions[index],
            velocities=path.velocities[index],
            accelerations=path.accelerations[index],
            time_from_start=to_time(seconds_to_ns(float(time_s)), "Duration"),
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
    return int(duration.sec) * NS_PER_S + int(duration.nanosec)


def to_time(time_ns: int, kind: str = "Time") -> Any:
    seconds, nanoseconds = divmod(time_ns, NS_PER_S)
    return default(f"builtin_interfaces/msg/{kind}", sec=seconds, nanosec=nanoseconds)


CONTROLLER_ACTION: Final = "/panda_arm_controller/follow_joint_trajectory"
CONTROLLER_ACTION_TYPE: Final = "control_msgs/action/FollowJointTrajectory"
MOVE_ACTION: Final = "/move_action"
MOVE_ACTION_TYPE: Final = "moveit_msgs/action/MoveGroup"
SEED_PARAMETER: Final = "planner_seed"
FAILURE_PARAMETER: Final = "planted_failure"
"""Parameter that plants a fault: the error code with which the next goal ends; unset for none."""

_SPHERE = 2


class Failed(Exception):
    """A goal failed, with MoveIt's error code."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def to_constraints(goal: Goal) -> Message:
    tolerance = _ROTATION_TOLERANCE_RAD
    if goal.joints is not None:
        limits = {"tolerance_above": tolerance, "tolerance_below": tolerance, "weight": 1.0}
        joints = [
            default("moveit_msgs/msg/JointConstraint", joint_name=name, position=value, **limits)
            for name, value in goal.joints.items()
        ]
        return default("moveit_msgs/msg/Constraints", name=goal.name, joint_constraints=joints)
    assert goal.pose is not None
    x, y, z = goal.pose.position
    qx, qy, qz, qw = goal.pose.orientation
    center = default(
        "geometry_msgs/msg/Pose",
        position=default("geometry_msgs/msg/Point", x=x, y=y, z=z),
        orientation=default("geometry_msgs/msg/Quaternion", w=1.0),
    )
    sphere = default("shape_msgs/msg/SolidPrimitive", type=_SPHERE, dimensions=np.array([_POSITION_TOLERANCE_M]))
    of_link = {"header": default("std_msgs/msg/Header", frame_id=BASE_LINK), "link_name": goal.link, "weight": 1.0}
    position = default(
        "moveit_msgs/msg/PositionConstraint",
        constraint_region=default("moveit_msgs/msg/BoundingVolume", primitives=[sphere], primitive_poses=[center]),
        **of_link,
    )
    orientation = default(
        "moveit_msgs/msg/OrientationConstraint",
        orientation=default("geometry_msgs/msg/Quaternion", x=qx, y=qy, z=qz, w=qw),
        **{f"absolute_{axis}_axis_tolerance": tolerance for axis in "xyz"},
        **of_link,
    )
    return default(
        "moveit_msgs/msg/Constraints",
        name=goal.name,
        position_constraints=[position],
        orientation_constraints=[orientation],
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
    """Returns all joints of a `RobotState`, ``None`` for the present state; raises `Failed` if it names only some."""
    values = dict(zip(state.joint_state.name, state.joint_state.position.tolist(), strict=False))
    if not values:
        return None
    if set(values) != set(joint_names):
        raise Failed(ErrorCode.INVALID_ROBOT_STATE, "a start state must name every joint of the arm")
    return np.array([values[name] for name in joint_names])


def to_goal(alternatives: Sequence[Message], joint_names: Sequence[str]) -> Goal:
    """Returns the goal of a `MotionPlanRequest`'s constraints.

    Raises:
        Failed: not exactly one set of constraints, or neither a complete pose of the tip nor a value for every joint.
    """
    if len(alternatives) != 1:
        raise Failed(ErrorCode.INVALID_GOAL_CONSTRAINTS, "exactly one set of goal constraints is planned for")
    wanted = alternatives[0]
    if wanted.joint_constraints:
        joints = {constraint.joint_name: constraint.position for constraint in wanted.joint_constraints}
        if set(joints) != set(joint_names):
            raise Failed(ErrorCode.INVALID_GOAL_CONSTRAINTS, "a joint goal must name every joint of the arm")
        return Goal(wanted.name, joints=joints)
    if len(wanted.position_constraints) != 1 or len(wanted.orientation_constraints) != 1:
        raise Failed(ErrorCode.INVALID_GOAL_CONSTRAINTS, "a pose goal needs one position and one orientation")
    position, orientation = wanted.position_constraints[0], wanted.orientation_constraints[0]
    if {position.link_name, orientation.link_name} != {TIP_LINK}:
        raise Failed(ErrorCode.INVALID_LINK_NAME, f"only {TIP_LINK} can be given a pose")
    if len(position.constraint_region.primitive_poses) != 1:
        raise Failed(ErrorCode.INVALID_GOAL_CONSTRAINTS, "the position must be one primitive")
    point = position.constraint_region.primitive_poses[0].position
    turn = orientation.orientation
    return Goal(wanted.name, pose=Pose((point.x, point.y, point.z), (turn.x, turn.y, turn.z, turn.w)))
