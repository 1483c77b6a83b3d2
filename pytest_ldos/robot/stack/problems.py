"""Planning problems, from files of MoveIt's messages or written by hand.

A folder has ``request*.yaml`` (`moveit_msgs/MotionPlanRequest`) each with a ``scene*.yaml``
(`moveit_msgs/PlanningScene`), as MotionBenchMaker writes them; its subfolders are sets. A file has problems by hand, in
metres and radians, poses in the frame ``frame``:

.. code-block:: yaml

    group: panda_arm
    frame: panda_link0
    start: {panda_joint1: 0.0, panda_joint2: -0.785}
    problems:
      - name: over the table
        scene: table.scene  # MoveIt's text format; may be left out
        objects: [{box: [0.4, 1.0, 0.02], position: [0.5, 0.0, 0.3]}]
        goal: {joints: {panda_joint1: 1.2, panda_joint2: -0.5}}
      - name: shelf
        set: hard  # may be left out; each problem is in the set all, too
        goal: {link: panda_link8, pose: {position: [0.5, 0.0, 0.6], orientation: [1, 0, 0, 0]}}
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown, require
from pytest_ldos.base.text import NS_PER_S
from pytest_ldos.robot.stack.goals import Goal, as_table, load_yaml, parse_goal
from pytest_ldos.robot.stack.protocol import CaseBook, MessageCase, StimulusCase, digest_of_data
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.stimuli import PlanSpec

ALL: Final = "all"
"""Set of all problems."""

_SHOWN: Final = 5
_SHAPES: Final = ("box", "sphere", "cylinder", "cone")
EVERYTHING: Final = {"id": "", "operation": 1}  # CollisionObject.REMOVE
_JOINT_TOLERANCE_RAD: Final = 1e-3
_POSITION_TOLERANCE_M: Final = 1e-3
_ORIENTATION_TOLERANCE_RAD: Final = 1e-2


def count_problems(spec: ScenarioSpec, goals: Sequence[StimulusCase] | str) -> int:
    """The number of planning problems of a set, or of those given; 1 for other trials. Raises as `read_problems`."""
    driver = spec.stack.driver
    if not isinstance(driver, PlanSpec):
        return 1
    return len(read_problems(driver).cases(goals) if isinstance(goals, str) else goals)


def read_problems(spec: PlanSpec) -> CaseBook:
    """Reads problems, with the planner and the limits of the settings in place of their own.

    Each case's message has ``scene`` and ``request``, as fields of the types. Unchanged files are read once. Raises
    `ConfigurationError` if a file cannot be read, a request has no scene, a number is not finite, a name occurs twice,
    or there is no problem.
    """
    return _read(spec, Path.cwd(), digest_of_data(Path(spec.problems)))


@lru_cache(maxsize=4)
def _read(spec: PlanSpec, _folder: Path, _digest: str) -> CaseBook:
    path = Path(spec.problems)
    found = list(_of_folder(path) if path.is_dir() else _by_hand(path))
    require(bool(found), f"{path} has no planning problem", remedy="it needs request*.yaml, or a file of problems")
    sets: dict[str, list[MessageCase]] = {ALL: []}
    names = [name for _, name, _, _ in found]
    for family, name, scene, request in found:
        require(names.count(name) < 2, f"{path}: two problems are called {name!r}", remedy="give one another name")
        place = _not_finite({"scene": scene, "request": request})
        reason = f"{path}, problem {name!r}: {place} is not a finite number"
        require(not place, reason, remedy="correct or remove the problem")
        case = MessageCase(name, {"scene": scene, "request": {**request, **_overrides(spec)}})
        sets[ALL].append(case)
        if family:
            sets.setdefault(family, []).append(case)
    return CaseBook({name: tuple(cases) for name, cases in sets.items()})


def _not_finite(value: Any, place: str = "") -> str:
    """Place of the first number that is not finite, as ``request.workspace_parameters.min_corner.x``; empty if none."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else place
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping | list):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
    found = (_not_finite(each, f"{place}.{key}".lstrip(".")) for key, each in items)
    return next(filter(None, found), "")


def _overrides(spec: PlanSpec) -> dict[str, Any]:
    return {
        "planner_id": spec.planner,
        "allowed_planning_time": spec.time_limit_s,
        "num_planning_attempts": 1,
        "max_velocity_scaling_factor": 1.0,
        "max_acceleration_scaling_factor": 1.0,
        **({"pipeline_id": spec.pipeline} if spec.pipeline else {}),
    }


Problem = tuple[str, str, Mapping[str, Any], Mapping[str, Any]]
"""Set, name, scene and request."""


def _of_folder(folder: Path) -> Iterator[Problem]:
    for file in sorted(folder.rglob("request*.yaml")):
        scene = file.with_name(f"scene{file.name.removeprefix('request')}")
        if not scene.is_file():
            raise ConfigurationError(f"{file} has no scene", remedy=f"put it into {scene.name}")
        family = file.parent.relative_to(folder).as_posix()
        number = file.stem.removeprefix("request").lstrip("_-") or "1"
        name = number if family == "." else f"{family} {number}"
        yield ("" if family == "." else family), name, with_frames(load_yaml(scene)), with_tolerances(load_yaml(file))


def with_frames(scene: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scene, whose objects without a frame are in its fixed frame: MoveIt takes none without."""
    fixed = scene.get("fixed_frame_transforms") or [{}]
    header = {"frame_id": fixed[0].get("child_frame_id", "world")}
    world = scene.get("world", {})
    objects = [{"header": header, **each} for each in world.get("collision_objects", [])]
    return {**scene, "world": {**world, "collision_objects": objects}}


def with_tolerances(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request, whose joint constraints without tolerances have usual ones: zero would refuse each plan."""
    usual = {"tolerance_above": _JOINT_TOLERANCE_RAD, "tolerance_below": _JOINT_TOLERANCE_RAD, "weight": 1.0}
    goals = [
        {**goal, "joint_constraints": [{**usual, **joint} for joint in goal["joint_constraints"]]}
        if isinstance(goal, Mapping) and isinstance(goal.get("joint_constraints"), list)
        else goal
        for goal in request.get("goal_constraints", [])
    ]
    return {**request, "goal_constraints": goals}


def _by_hand(file: Path) -> Iterator[Problem]:
    table = load_yaml(file)
    refuse_unknown(table, {"group", "frame", "start", "problems"}, f"key of {file}")
    frame, problems = str(table.get("frame", "world")), table.get("problems")
    for number, each in enumerate(problems if isinstance(problems, list) else [], 1):
        where = f"{file}, problem {number}"
        problem = as_table(each, where)
        refuse_unknown(problem, {"name", "set", "scene", "objects", "start", "goal"}, f"key in {where}:")
        name = str(problem.get("name", number))
        objects = [*(_objects(problem.get("objects", []), frame, f"{where}, objects"))]
        if "scene" in problem:
            objects += read_scene(file.parent / str(problem["scene"]), frame)
        start = as_table(problem.get("start", table.get("start")), f"{where}, start")
        goal = parse_goal(name, problem.get("goal"), f"{where}, goal")
        state = {"name": [*start], "position": [float(value) for value in start.values()]}
        request = {
            "group_name": str(table.get("group", "")),
            "start_state": {"joint_state": state},
            "goal_constraints": [_constraints(goal, frame)],
        }
        # A difference keeps the robot's own collisions that may be ignored; the objects before are removed.
        scene = {"is_diff": True, "world": {"collision_objects": [EVERYTHING, *objects]}}
        yield str(problem.get("set", "")), name, scene, with_tolerances(request)


def _constraints(goal: Goal, frame: str) -> Mapping[str, Any]:
    if goal.joints is not None:
        joints = [{"joint_name": name, "position": position} for name, position in goal.joints.items()]
        return {"joint_constraints": joints}
    assert goal.pose is not None
    region = {
        "primitives": [{"type": "sphere", "dimensions": [_POSITION_TOLERANCE_M]}],
        "primitive_poses": [{"position": goal.pose.position, "orientation": [0, 0, 0, 1]}],
    }
    of_link = {"header": {"frame_id": frame}, "link_name": goal.link, "weight": 1.0}
    tolerances = {f"absolute_{axis}_axis_tolerance": _ORIENTATION_TOLERANCE_RAD for axis in "xyz"}
    return {
        "position_constraints": [{**of_link, "constraint_region": region}],
        "orientation_constraints": [{**of_link, "orientation": goal.pose.orientation, **tolerances}],
    }


def _objects(given: Any, frame: str, where: str) -> Iterator[Mapping[str, Any]]:
    if not isinstance(given, list):
        raise ConfigurationError(f"{where} is {given!r}", remedy="it must be a list of objects")
    for number, each in enumerate(given, 1):
        table = as_table(each, f"{where} {number}")
        refuse_unknown(table, {*_SHAPES, "name", "position", "orientation"}, f"key in {where} {number}:")
        shapes = [kind for kind in _SHAPES if kind in table]
        remedy = f"give one of {', '.join(_SHAPES)}"
        require(len(shapes) == 1, f"{where} {number} has {len(shapes)} shapes", remedy=remedy)
        pose = {"position": table.get("position", [0, 0, 0]), "orientation": table.get("orientation", [0, 0, 0, 1])}
        name = str(table.get("name", f"object {number}"))
        yield _collision_object(name, frame, [(shapes[0], table[shapes[0]], pose)])


def _collision_object(name: str, frame: str, shapes: Sequence[tuple[str, Any, Mapping[str, Any]]]) -> dict[str, Any]:
    return {
        "id": name,
        "header": {"frame_id": frame},
        "pose": {"orientation": [0, 0, 0, 1]},
        "primitives": [{"type": kind, "dimensions": size} for kind, size, _ in shapes],
        "primitive_poses": [pose for _, _, pose in shapes],
    }


def read_scene(file: Path, frame: str) -> list[dict[str, Any]]:
    """Reads objects of primitive shapes from MoveIt's text format (``.scene``), with or without poses of objects.

    Raises `ConfigurationError` for a mesh, or an unreadable file. Reference: `PlanningScene::loadGeometryFromStream`.
    """
    try:
        lines = iter(file.read_text("utf-8").splitlines()[1:])  # after the scene's name
        return [*_scene_objects(lines, frame)]
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{file} cannot be read as a scene: {error}", remedy="export it from MoveIt again"
        ) from None


def _scene_objects(lines: Iterator[str], frame: str) -> Iterator[dict[str, Any]]:
    def numbers() -> list[float]:
        return [float(word) for word in _line(lines, "its numbers").split()]

    for line in lines:
        if line.strip() == ".":
            return
        if not line.startswith("*"):
            continue
        name, first = line[1:].strip(), numbers()
        pose = None
        if len(first) == 3:
            pose = {"position": first, "orientation": numbers()}
            first = numbers()
        shapes = []
        for _ in range(int(first[0])):
            kind = _line(lines, "a shape").strip()
            if kind not in _SHAPES:
                raise ValueError(f"object {name} has the shape {kind!r}")
            size = numbers()
            if kind in {"cylinder", "cone"}:
                size.reverse()  # the text has radius and length, the message height and radius
            shapes.append((kind, size, {"position": numbers(), "orientation": numbers()}))
            _line(lines, "a colour")
        made = _collision_object(name, frame, shapes)
        yield made if pose is None else {**made, "pose": pose}


def refuse_impossible(reasons: Sequence[str], number: int) -> None:
    """Raises `ConfigurationError` with the problems of a suite that have no plan: place and reason of each."""
    if reasons:
        more = f"; {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
        raise ConfigurationError(
            f"{len(reasons)} of {number} problems cannot be planned: {'; '.join(reasons[:_SHOWN])}{more}",
            remedy="correct or remove them, or set check = false",
        )


def numbers_of_plan(points: Sequence[Any]) -> dict[str, float]:
    """Length, duration and waypoints of a plan, from its `trajectory_msgs/JointTrajectoryPoint`."""
    last = points[-1].time_from_start
    return {
        "path_rad": sum(math.dist(one.positions, other.positions) for one, other in pairwise(points)),
        "trajectory_s": last.sec + last.nanosec / NS_PER_S,
        "waypoints": float(len(points)),
    }


def _line(lines: Iterator[str], what: str) -> str:
    found = next(lines, None)
    if found is None:
        raise ValueError(f"it ends before {what}")
    return found
