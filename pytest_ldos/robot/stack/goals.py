"""Goals for an arm, and the outcomes of motions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self

from pytest_ldos.base.errors import ConfigurationError

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


@dataclass(frozen=True)
class Pose:
    """A position in metres and an orientation as quaternion x, y, z, w (any length).

    Raises:
        ConfigurationError: not three and four finite numbers, or the quaternion is zero.
    """

    position: Vector3
    orientation: Quaternion

    def __post_init__(self) -> None:
        position: Sequence[float] = self.position
        orientation: Sequence[float] = self.orientation
        if len(position) != 3 or len(orientation) != 4:
            raise ConfigurationError(
                f"a pose of {len(position)} and {len(orientation)} numbers",
                remedy="give a position x, y, z and a quaternion x, y, z, w",
            )
        if not all(map(math.isfinite, (*self.position, *self.orientation))):
            raise ConfigurationError(f"a pose with a number that is not finite: {self.position}, {self.orientation}")
        if math.hypot(*self.orientation) < 1e-6:
            raise ConfigurationError(
                f"the orientation {self.orientation} is no rotation", remedy="give a quaternion x, y, z, w"
            )


@dataclass(frozen=True)
class PoseError:
    """Difference between two poses.

    Attributes:
        position_m: distance, metres.
        rotation_rad: angle of the rotation from one to the other, 0 to π.
    """

    position_m: float
    rotation_rad: float

    @classmethod
    def between(cls, one: Pose, other: Pose) -> Self:
        lengths = math.hypot(*one.orientation) * math.hypot(*other.orientation)
        cosine = abs(sum(a * b for a, b in zip(one.orientation, other.orientation, strict=True))) / lengths
        return cls(math.dist(one.position, other.position), 2 * math.acos(min(1.0, cosine)))


REACHED_POSITION_M: Final = 0.01
REACHED_ROTATION_RAD: Final = 0.1


@dataclass(frozen=True)
class Goal:
    """A motion request: either a pose of the tip or the position of every joint.

    ``Goal("shelf", pose=Pose((0.5, 0.0, 0.4), (1.0, 0.0, 0.0, 0.0)))`` reaches half a metre
    ahead of `panda_link0` with the hand pointing down.

    Attributes:
        name: name in reports; trials of the same goal are compared with each other.
        pose: pose of `link` in the arm's base frame.
        joints: positions by joint name, radians.
        link: the link that moves to `pose`.
    """

    name: str
    pose: Pose | None = None
    joints: Mapping[str, float] | None = None
    link: str = "panda_link8"

    def __post_init__(self) -> None:
        if (self.pose is None) == (self.joints is None):
            raise ConfigurationError(
                f"goal {self.name!r} must have either a pose or joints", remedy="give exactly one of the two"
            )
        if self.joints is not None and not all(map(math.isfinite, self.joints.values())):
            raise ConfigurationError(f"goal {self.name!r} has a joint position that is not finite")

    def to_dict(self) -> dict[str, Any]:
        pose = self.pose and {"position": list(self.pose.position), "orientation": list(self.pose.orientation)}
        return {"name": self.name, "link": self.link, "pose": pose, "joints": self.joints and dict(self.joints)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        pose = values.get("pose")
        return cls(
            name=values["name"],
            link=values.get("link", "panda_link8"),
            pose=pose and Pose(tuple(pose["position"]), tuple(pose["orientation"])),
            joints=values.get("joints"),
        )


REACH: Final = Goal("reach", pose=Pose((0.4, 0.2, 0.5), (0.707, 0.707, 0.0, 0.0)))
"""The reach of the seed harness: `panda_link8` in `panda_link0`."""

HOME: Final = Goal(
    "home",
    joints={
        "panda_joint1": 0.0,
        "panda_joint2": -math.pi / 4,
        "panda_joint3": 0.0,
        "panda_joint4": -3 * math.pi / 4,
        "panda_joint5": 0.0,
        "panda_joint6": math.pi / 2,
        "panda_joint7": math.pi / 4,
    },
)
"""The Panda's `ready` position in MoveIt."""

GOAL_SETS: Final[Mapping[str, tuple[Goal, ...]]] = {"reach": (REACH,)}


@dataclass(frozen=True)
class GoalBook:
    """The goals of an arm, by name.

    Attributes:
        home: start position of every trial; a goal for joints.
        sets: goals by the name of their set.
    """

    home: Goal
    sets: Mapping[str, tuple[Goal, ...]]

    def goals(self, name: str) -> tuple[Goal, ...]:
        """Returns a goal set by its name.

        Raises:
            ConfigurationError: there is no set of that name.
        """
        if name not in self.sets:
            raise ConfigurationError(f"there is no goal set '{name}'", remedy=f"known are: {', '.join(self.sets)}")
        return self.sets[name]


PANDA_GOALS: Final = GoalBook(HOME, GOAL_SETS)


class ErrorCode:
    """Values of `moveit_msgs/MoveItErrorCodes` that are used here."""

    SUCCESS: Final = 1
    FAILURE: Final = 99999
    PLANNING_FAILED: Final = -1
    INVALID_MOTION_PLAN: Final = -2
    CONTROL_FAILED: Final = -4
    TIMED_OUT: Final = -6
    PREEMPTED: Final = -7
    START_STATE_IN_COLLISION: Final = -10
    GOAL_IN_COLLISION: Final = -12
    INVALID_GROUP_NAME: Final = -15
    INVALID_GOAL_CONSTRAINTS: Final = -16
    INVALID_ROBOT_STATE: Final = -17
    INVALID_LINK_NAME: Final = -18
    NO_IK_SOLUTION: Final = -31


class OutcomeClass(StrEnum):
    """Classes of trial outcomes."""

    SUCCESS = "success"
    PLANNING_FAILED = "planning_failed"
    CONTROL_FAILED = "control_failed"
    TIMED_OUT = "timed_out"
    ABORTED = "aborted"
    STACK_DIED = "stack_died"


def classify(error_code: int, *, executed: bool) -> OutcomeClass:
    """Returns the class of a result.

    Args:
        error_code: MoveIt's error code.
        executed: True if execution began. A failure before that is a failure to plan,
            whatever its code: a goal out of reach ends with `TIMED_OUT` in MoveIt, and
            with `NO_IK_SOLUTION` in the embedded stack.
    """
    if error_code == ErrorCode.SUCCESS:
        return OutcomeClass.SUCCESS
    if error_code == ErrorCode.PREEMPTED:
        return OutcomeClass.ABORTED
    if not executed:
        return OutcomeClass.PLANNING_FAILED
    if error_code == ErrorCode.TIMED_OUT:
        return OutcomeClass.TIMED_OUT
    if error_code == ErrorCode.CONTROL_FAILED:
        return OutcomeClass.CONTROL_FAILED
    return OutcomeClass.ABORTED
