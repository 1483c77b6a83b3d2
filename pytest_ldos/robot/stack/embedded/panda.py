"""The Panda: MuJoCo's model among obstacles, kinematics and collision checks; timed paths and goals as messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final
from xml.etree import ElementTree as ET

import mujoco
import numpy as np
import numpy.typing as npt
from mujoco import minimize

from pytest_ldos.base.text import NS_PER_S, seconds_to_ns
from pytest_ldos.robot.dds.endpoint import Message, default
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


def load_panda(objects: Sequence[Message] = ()) -> Panda:
    """Compiles the model, after a sequence of `moveit_msgs/CollisionObject` has changed its obstacles.

    Raises `Failed` for one not made of boxes, spheres and cylinders, or without a valid size or pose.
    """
    xml = files("pytest_ldos.robot.stack.embedded").joinpath("panda.xml").read_text("utf-8")
    if objects:
        root = ET.fromstring(xml)  # noqa: S314 - installed with this module
        for each in objects:
            _change_obstacles(root.find("worldbody"), each)
        xml = ET.tostring(root, "unicode")
    try:
        model = mujoco.MjModel.from_xml_string(xml)
    except ValueError as error:
        raise Failed(ErrorCode.FAILURE, f"its scene cannot be modelled: {error}") from None
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


_ADD, _REMOVE = 0, 1  # operations of a `CollisionObject`
_SHAPES: Final[Mapping[int, tuple[str, int]]] = {1: ("box", 3), 2: ("sphere", 1), 3: ("cylinder", 2)}
"""MuJoCo's name and the number of dimensions, by type of a `SolidPrimitive`."""
FRAMES: Final = ("", "world", BASE_LINK)


def _change_obstacles(world: Any, each: Message) -> None:
    """Adds an object, in place of one of the same name, or removes one; an empty name removes all."""
    name = f"its scene: object '{each.id}'"
    if each.operation not in {_ADD, _REMOVE} or not (each.id or each.operation):
        raise Failed(ErrorCode.FAILURE, f"{name} is neither added by its name nor removed")
    for body in world.findall("body"):
        if body.get("name") != BASE_LINK and each.id in {"", body.get("name")}:
            world.remove(body)
    if each.operation == _REMOVE:
        return
    if each.header.frame_id not in FRAMES:
        raise Failed(ErrorCode.FAILURE, f"{name} is in the frame '{each.header.frame_id}' (there is {BASE_LINK})")
    if each.meshes or each.planes or not {shape.type for shape in each.primitives} <= set(_SHAPES):
        raise Failed(ErrorCode.FAILURE, f"{name} is not made of boxes, spheres and cylinders alone")
    if len(each.primitives) != len(each.primitive_poses):
        raise Failed(ErrorCode.FAILURE, f"{name} does not have one pose for each shape")
    body = ET.SubElement(world, "body", {"name": each.id, **_pose_of(each.pose)})
    for shape, pose in zip(each.primitives, each.primitive_poses, strict=True):
        kind, count = _SHAPES[shape.type]
        if len(shape.dimensions) != count or min(shape.dimensions) <= 0:
            raise Failed(ErrorCode.FAILURE, f"{name} has a {kind} whose size is not {count} numbers above 0")
        # A cylinder has height and radius here; MuJoCo's sizes are radius and half the height, and halves of a box.
        size = shape.dimensions if kind == "sphere" else shape.dimensions / 2
        size = (shape.dimensions[1], size[0]) if kind == "cylinder" else size
        ET.SubElement(body, "geom", {"type": kind, "size": _text_of(size), **_pose_of(pose)})


def _pose_of(pose: Message) -> dict[str, str]:
    """Attributes of a pose; an orientation of zeros, the default of a message, is none."""
    at, turn = pose.position, pose.orientation
    quaternion = (turn.w, turn.x, turn.y, turn.z)
    turned = {"quat": _text_of(quaternion)} if any(quaternion) else {}
    return {"pos": _text_of((at.x, at.y, at.z)), **turned}


def _text_of(numbers: Iterable[float]) -> str:
    return " ".join(repr(float(each)) for each in numbers)


_UNNAMED: Final = "unnamed"  # name of a goal whose constraints have none
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

    def contact(self, joints: Joints) -> str:
        """Names two bodies that touch, as ``panda_hand with shelf``; empty if none do."""
        if not self.is_colliding(joints):
            return ""
        bodies = self._model.geom_bodyid[self._data.contact[0].geom]
        return " with ".join(self._model.body(body).name for body in bodies)

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
        return np.concatenate([position - self._data.site_xpos[self._panda.tip_site], _ROTATION_WEIGHT * rotation])

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
    """A trajectory with the content of a `trajectory_msgs/JointTrajectory`."""

    times_s: npt.NDArray[np.float64]  # times since the start; shape ``(n,)``, the first is 0
    # positions, velocities, accelerations: rad, rad/s, rad/s²; shape ``(n, 7)``
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
    """Returns a `JointTrajectory`'s path; raises `ValueError` for too few, disordered or incomplete points."""
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
    """Returns the arm's joints of a `RobotState`, ``None`` for the present state; raises `Failed` if it lacks some."""
    values = dict(zip(state.joint_state.name, state.joint_state.position.tolist(), strict=False))
    if not values:
        return None
    if not values.keys() >= set(joint_names):
        raise Failed(ErrorCode.INVALID_ROBOT_STATE, "a start state must name every joint of the arm")
    return np.array([values[name] for name in joint_names])


def to_goal(alternatives: Sequence[Message], joint_names: Sequence[str]) -> Goal:
    """Returns the goal of a `MotionPlanRequest`'s constraints.

    Raises `Failed` unless they are one set, with a complete pose of the tip or a value for every joint.
    """
    if len(alternatives) != 1:
        raise Failed(ErrorCode.INVALID_GOAL_CONSTRAINTS, "exactly one set of goal constraints is planned for")
    wanted = alternatives[0]
    if wanted.joint_constraints:
        joints = {constraint.joint_name: constraint.position for constraint in wanted.joint_constraints}
        if set(joints) != set(joint_names):
            raise Failed(ErrorCode.INVALID_GOAL_CONSTRAINTS, "a joint goal must name every joint of the arm")
        return Goal(wanted.name or _UNNAMED, joints=joints)
    if len(wanted.position_constraints) != 1 or len(wanted.orientation_constraints) != 1:
        raise Failed(ErrorCode.INVALID_GOAL_CONSTRAINTS, "a pose goal needs one position and one orientation")
    position, orientation = wanted.position_constraints[0], wanted.orientation_constraints[0]
    if {position.link_name, orientation.link_name} != {TIP_LINK}:
        raise Failed(ErrorCode.INVALID_LINK_NAME, f"only {TIP_LINK} can be given a pose")
    if not {position.header.frame_id, orientation.header.frame_id} <= set(FRAMES):
        raise Failed(ErrorCode.INVALID_GOAL_CONSTRAINTS, f"the pose is not in the frame {BASE_LINK}")
    if len(position.constraint_region.primitive_poses) != 1:
        raise Failed(ErrorCode.INVALID_GOAL_CONSTRAINTS, "the position must be one primitive")
    point = position.constraint_region.primitive_poses[0].position
    turn = orientation.orientation
    return Goal(wanted.name or _UNNAMED, pose=Pose((point.x, point.y, point.z), (turn.x, turn.y, turn.z, turn.w)))
