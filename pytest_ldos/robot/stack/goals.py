"""Goals for an arm from a file or built in, and the outcomes of motions.

.. code-block:: yaml

    home: {joints: {joint_1: 0.0, joint_2: -0.5}}
    goal_sets:
      reach:
        - name: reach
          link: tool0
          pose: {position: [0.4, 0.2, 0.5], orientation: [0.707, 0.707, 0.0, 0.0]}
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown, require
from pytest_ldos.scenario.fields import build_spec

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

_EVERY_JOINT: Final = "give the position of every joint, in radians"


@dataclass(frozen=True)
class Pose:
    """A position in metres and an orientation as quaternion x, y, z, w (any length).

    Raises:
        ConfigurationError: not three and four finite numbers, or the quaternion is zero.
    """

    position: Vector3
    orientation: Quaternion

    def __post_init__(self) -> None:
        where, turn = self.position, self.orientation
        lengths, remedy = (len(where), len(turn)), "give a position x, y, z and a quaternion x, y, z, w"
        require(lengths == (3, 4), f"a pose of {lengths[0]} and {lengths[1]} numbers", remedy=remedy)
        is_finite = all(map(math.isfinite, (*where, *turn)))
        require(is_finite, f"a pose with a number that is not finite: {where}, {turn}")
        is_rotation = math.hypot(*turn) >= 1e-6
        require(is_rotation, f"the orientation {turn} is not a rotation", remedy="give a quaternion x, y, z, w")


@dataclass(frozen=True)
class PoseError:
    """Difference between two poses: distance, and angle of the rotation from one to the other, 0 to π."""

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
        name: name in reports; trials of equal goals are compared.
        pose: pose of `link` in the arm's base frame.
        joints: positions by joint name, radians.
        link: the link that moves to `pose`.
    """

    name: str
    pose: Pose | None = None
    joints: Mapping[str, float] | None = None
    link: str = "panda_link8"

    def __post_init__(self) -> None:
        name, is_for_joints = self.name, self.joints is not None
        require(bool(name and self.link), f"goal {name!r} lacks a name or a link", remedy="name: reach, link: tool0")
        require(bool(self.joints) or not is_for_joints, f"goal {name!r} has no joints", remedy=_EVERY_JOINT)
        is_either = is_for_joints is (self.pose is None)
        require(is_either, f"goal {name!r} must have either a pose or joints", remedy="give exactly one of the two")
        is_finite = all(map(math.isfinite, (self.joints or {}).values()))
        require(is_finite, f"goal {name!r} has a joint position that is not finite")


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


Cases = TypeVar("Cases")


def find_set(sets: Mapping[str, Cases], name: str) -> Cases:
    """Raises `ConfigurationError` if there is no set of that name."""
    require(name in sets, f"there is no goal set '{name}'", remedy=f"known are: {', '.join(sets)}")
    return sets[name]


@dataclass(frozen=True)
class GoalBook:
    """The goals of an arm, by the name of their set; every trial starts at `home`, a goal for joints."""

    home: Goal
    sets: Mapping[str, tuple[Goal, ...]]

    def goals(self, name: str) -> tuple[Goal, ...]:
        return find_set(self.sets, name)


PANDA_GOALS: Final = GoalBook(HOME, {"reach": (REACH,)})


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
    SUCCESS = "success"
    PLANNING_FAILED = "planning_failed"
    CONTROL_FAILED = "control_failed"
    TIMED_OUT = "timed_out"
    ABORTED = "aborted"
    STACK_DIED = "stack_died"


def classify(error_code: int, *, executed: bool) -> OutcomeClass:
    """Returns the class of a result with MoveIt's error code.

    A failure before execution began is a failure to plan with any code: a goal out of reach ends with `TIMED_OUT` in
    MoveIt, and with `NO_IK_SOLUTION` in the embedded stack.
    """
    if error_code == ErrorCode.SUCCESS:
        return OutcomeClass.SUCCESS
    if error_code == ErrorCode.PREEMPTED:
        return OutcomeClass.ABORTED
    if not executed:
        return OutcomeClass.PLANNING_FAILED
    classes = {ErrorCode.TIMED_OUT: OutcomeClass.TIMED_OUT, ErrorCode.CONTROL_FAILED: OutcomeClass.CONTROL_FAILED}
    return classes.get(error_code, OutcomeClass.ABORTED)


Parsed = TypeVar("Parsed")


def read_goals(file: Path) -> GoalBook:
    """Reads the goal sets and the home position; raises `ConfigurationError`, which names a wrong goal and its key."""
    table = load_goal_file(file, {"home", "goal_sets"})
    home = parse_goal("home", table.get("home"), f"{file}: home")
    require(home.joints is not None, f"{file}: home has no joints", remedy=_EVERY_JOINT)
    return GoalBook(home, parse_sets(table, file, Goal, example="reach"))


def parse_goal(name: str, table: Any, where: str) -> Goal:
    return build_spec(Goal, {"name": name, **as_table(table, where)}, where)


def parse_sets(
    table: Mapping[str, Any], file: Path, kind: type[Parsed], *, example: str
) -> dict[str, tuple[Parsed, ...]]:
    """Parses the sets below the key ``goal_sets`` of a goal file; `example` is the name of a set, for the remedy."""
    sets = as_table(table.get("goal_sets"), f"{file}: goal_sets")
    require(bool(sets), f"{file} has no goal set", remedy=f"name one below goal_sets, as in `{example}:`")
    parsed = {}
    for name, goals in sets.items():
        where = f"{file}: goal set {name!r}"
        is_list = isinstance(goals, list) and bool(goals)
        require(is_list, f"{where} is not a list of goals", remedy="begin each goal with a dash")
        tables = [as_table(goal, where) for goal in goals]
        parsed[str(name)] = tuple(build_spec(kind, goal, f"{where}, goal {goal.get('name')!r}") for goal in tables)
    return parsed


def load_goal_file(file: Path, keys: Collection[str]) -> Mapping[str, Any]:
    """Raises `ConfigurationError` as `load_yaml`, or if the file has another key."""
    table = load_yaml(file)
    refuse_unknown(table, keys, f"key of {file}")
    return table


def load_yaml(file: Path) -> Mapping[str, Any]:
    """Raises `ConfigurationError` if the file cannot be read, or is not a table of YAML."""
    import yaml  # noqa: PLC0415 - only where such a file is used

    try:
        loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
        loader.add_constructor("tag:yaml.org,2002:python/tuple", loader.construct_sequence)  # which launch writes
        return as_table(yaml.load(file.read_text("utf-8"), loader), f"{file}")  # noqa: S506 - both are safe
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read: {error.strerror}",
            remedy="files in [tool.ldos.stack] and its stimulus are paths from pyproject.toml",
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is not YAML: {error}") from None


def as_table(value: Any, where: str) -> Mapping[str, Any]:
    """Raises `ConfigurationError` with the place if it is none."""
    if not isinstance(value, dict):
        raise ConfigurationError(f"{where} is {value!r}", remedy="it must be a table of keys and values")
    return value
