"""Goal sets from a YAML file, which the C++ goal client of the ROS 2 workspace reads as well.

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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import refuse_unknown
from pytest_ldos.robot.stack.goals import Goal, GoalBook, Pose

_GOAL_KEYS: Final = frozenset({"name", "link", "pose", "joints"})


def read_goals(file: Path) -> GoalBook:
    """Reads the goal sets and the home position from a file.

    Raises:
        ConfigurationError: it cannot be read, is not YAML, or a goal in it is wrong; names
            the goal and the key.
    """
    return _parse_book(load_goal_file(file), file)


def load_goal_file(file: Path) -> Any:
    """Returns the values in a goal file, not checked.

    Raises:
        ConfigurationError: it cannot be read, or is no YAML.
    """
    import yaml  # noqa: PLC0415 - only where a goal file is used

    try:
        return yaml.safe_load(file.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be read: {error.strerror}",
            remedy="goals of [tool.ldos.stack] is a path from pyproject.toml",
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} is no YAML: {error}") from None


def _parse_book(document: Any, file: Path) -> GoalBook:
    table = as_table(document, f"{file}")
    refuse_unknown(table, {"home", "goal_sets"}, f"key of {file}")
    home = _parse_goal({"name": "home", **as_table(table.get("home"), f"{file}: home")}, f"{file}: home")
    if home.joints is None:
        raise ConfigurationError(f"{file}: home has no joints", remedy="give the position of every joint, in radians")
    sets = as_table(table.get("goal_sets"), f"{file}: goal_sets")
    if not sets:
        raise ConfigurationError(f"{file} has no goal set", remedy="name one below goal_sets, as in `reach:`")
    return GoalBook(home, {str(name): _parse_set(goals, f"{file}: goal set {name!r}") for name, goals in sets.items()})


def _parse_set(goals: Any, where: str) -> tuple[Goal, ...]:
    if not isinstance(goals, list) or not goals:
        raise ConfigurationError(f"{where} is no list of goals", remedy="begin each goal with a dash")
    return tuple(_parse_goal(as_table(goal, where), where) for goal in goals)


def _parse_goal(table: Mapping[str, Any], where: str) -> Goal:
    refuse_unknown(table, _GOAL_KEYS, f"key in {where}:")
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"{where} has a goal without a name", remedy="name: reach")
    where = f"{where}, goal {name!r}"
    pose, joints = table.get("pose"), table.get("joints")
    link = {"link": _text(table["link"], f"{where}, link")} if "link" in table else {}
    return Goal(
        name,
        pose=None if pose is None else _parse_pose(as_table(pose, f"{where}, pose"), where),
        joints=None if joints is None else _parse_joints(as_table(joints, f"{where}, joints"), where),
        **link,
    )


def _parse_pose(table: Mapping[str, Any], where: str) -> Pose:
    refuse_unknown(table, {"position", "orientation"}, f"key in {where}, pose:")
    x, y, z = _numbers(table.get("position"), 3, f"{where}, position")
    qx, qy, qz, qw = _numbers(table.get("orientation"), 4, f"{where}, orientation")
    return Pose((x, y, z), (qx, qy, qz, qw))


def _parse_joints(table: Mapping[str, Any], where: str) -> dict[str, float]:
    if not table:
        raise ConfigurationError(f"{where} has no joints", remedy="give the position of every joint, in radians")
    return {str(name): _numbers([value], 1, f"{where}, joint {name}")[0] for name, value in table.items()}


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{where} is {value!r}", remedy="it must be a name")
    return value


def as_table(value: Any, where: str) -> Mapping[str, Any]:
    """The value if it is a table of keys and values.

    Raises:
        ConfigurationError: it is not; names the place.
    """
    if not isinstance(value, dict):
        raise ConfigurationError(f"{where} is {value!r}", remedy="it must be a table of keys and values")
    return value


def _numbers(values: Any, count: int, where: str) -> list[float]:
    is_list = isinstance(values, list) and len(values) == count
    if not is_list or not all(_is_finite_number(each) for each in values):
        wanted = "a finite number" if count == 1 else f"a list of {count} finite numbers"
        raise ConfigurationError(f"{where} is {values[0] if count == 1 else values!r}", remedy=f"it must be {wanted}")
    return [float(each) for each in values]


def _is_finite_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
