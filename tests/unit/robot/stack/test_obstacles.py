"""Problems with obstacles for the embedded planner: scenes as MuJoCo's model, refusals, planners, and the suite."""

from __future__ import annotations

import itertools
import math
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.stack.embedded.move_group import Planner, fill_in, planner_of
from pytest_ldos.robot.stack.embedded.panda import Failed, Kinematics, load_panda, to_goal, to_start
from pytest_ldos.robot.stack.embedded.problem_planner import goal_of
from pytest_ldos.robot.stack.goals import HOME, ErrorCode
from pytest_ldos.robot.stack.problems import ALL, read_problems
from pytest_ldos.scenario.stimuli import PlanSpec

EXAMPLE = Path(__file__).parents[4] / "examples/planning"
assert HOME.joints is not None
READY = np.array(list(HOME.joints.values()))
REMOVE_ALL = {"id": "", "operation": 1}
SCALING = {"max_velocity_scaling_factor": 1.0, "max_acceleration_scaling_factor": 1.0}


def thing(shape="box", size=(0.2, 0.2, 0.2), at=(0.4, 0.0, 0.6), **others):
    pose = {"position": list(at), "orientation": [0, 0, 0, 1]}
    shapes = {"primitives": [{"type": shape, "dimensions": list(size)}], "primitive_poses": [pose]}
    return {"id": "thing", "header": {"frame_id": "world"}, **shapes, **others}


def message(*objects, **request):
    turned = {**HOME.joints, "panda_joint1": 1.0}
    joints = {"joint_constraints": [{"joint_name": name, "position": turned[name]} for name in turned]}
    start = {"joint_state": {"name": [*HOME.joints], "position": READY.tolist()}}
    wanted = {"group_name": "panda_arm", "goal_constraints": [joints], "start_state": start, **SCALING, **request}
    return {"scene": {"is_diff": True, "world": {"collision_objects": list(objects)}}, "request": wanted}


def objects_of(asked):
    return asked.planning_options.planning_scene_diff.world.collision_objects


def among(*objects) -> Kinematics:
    return Kinematics(load_panda(objects_of(goal_of(message(*objects), "here", time_limit_s=1.0))))


def plan(given, *, seed=1, time_limit_s=60.0):
    """Plans as the node does, without its process."""
    asked = goal_of(given, "here", time_limit_s=time_limit_s)
    panda = load_panda(objects_of(asked))
    goal, start = (
        to_goal(asked.request.goal_constraints, panda.joint_names),
        to_start(asked.request.start_state, panda.joint_names),
    )
    return Planner(panda).plan(goal, asked.request, start, seed, kinematics=Kinematics(panda))


@pytest.mark.parametrize(
    ("shape", "size", "at", "touches"),
    [
        ("box", (0.2, 0.2, 0.2), (0.4, 0.0, 0.6), True),
        ("box", (0.2, 0.2, 0.2), (0.4, 0.0, 0.2), False),
        ("sphere", (0.1,), (0.4, 0.0, 0.6), True),
        ("sphere", (0.1,), (0.4, 0.0, 0.2), False),
        # Height, then radius: the flat one ends 5 cm below the fingers, which reach down to 0.47 m.
        ("cylinder", (0.1, 0.2), (0.307, 0.0, 0.37), False),
        ("cylinder", (0.6, 0.05), (0.307, 0.0, 0.37), True),
    ],
)
def test_shapes_have_the_sizes_of_their_message(shape, size, at, touches):
    contact = among(REMOVE_ALL, thing(shape, size, at)).contact(READY)
    assert (contact != "") is touches
    assert not touches or " with thing" in contact or "thing with " in contact


def test_objects_are_added_replaced_and_removed():
    far = thing(at=(0.4, 0.0, 0.2))
    assert among(thing()).contact(READY)
    assert not among(thing(), far).contact(READY), "one of the same name is replaced"
    assert not among(thing(), {"id": "thing", "operation": 1}).contact(READY)
    floored = READY.copy()
    floored[1], floored[3] = 1.7, -0.2
    assert among(far).contact(floored), "the stack's own obstacles remain"
    assert not among(REMOVE_ALL, thing(at=(0, 0, 2))).contact(floored)


def test_pose_of_an_object_moves_its_shapes():
    shifted = thing(at=(0.4, 0.0, 0.1), pose={"position": [0, 0, 0.5]})
    assert among(REMOVE_ALL, shifted).contact(READY)


def test_a_whole_scene_is_in_place_of_the_stacks_obstacles():
    given = message(thing(at=(0, 0, 2)))
    given["scene"]["is_diff"] = False
    first, _ = objects_of(goal_of(given, "here", time_limit_s=1.0))
    assert (first.id, first.operation) == ("", 1)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (thing(meshes=[{}]), "boxes, spheres and cylinders"),
        (thing("cone", (0.1, 0.1)), "boxes, spheres and cylinders"),
        (thing(size=(0.1, 0.1)), "3 numbers above 0"),
        (thing(size=(0.1, 0.1, -0.1)), "3 numbers above 0"),
        (thing(header={"frame_id": "map"}), "frame 'map'"),
        (thing(primitive_poses=[]), "one pose for each shape"),
        (thing(operation=3), "neither added"),
        (thing(id="panda_hand"), "cannot be modelled"),
    ],
)
def test_scenes_that_are_refused(given, reason):
    with pytest.raises(Failed, match=reason):
        among(given)


@pytest.mark.parametrize(
    ("given", "code", "reason"),
    [
        (message(thing()), ErrorCode.START_STATE_IN_COLLISION, "start is in collision: .*thing"),
        (
            message(thing(size=(0.1, 0.1, 0.1), at=(0.17, 0.26, 0.6))),
            ErrorCode.GOAL_IN_COLLISION,
            "goal is in collision: .*thing",
        ),
        (message(thing(at=(0, 0, 2)), planner_id="Magic"), ErrorCode.FAILURE, "no planner 'Magic'"),
        (message(thing(at=(0, 0, 2)), start_state={"joint_state": {"name": ["a"], "position": [0.0]}}), -17, "every"),
    ],
)
def test_problems_without_a_plan(given, code, reason):
    with pytest.raises(Failed, match=reason) as caught:
        plan(given)
    assert caught.value.code == code


@pytest.mark.parametrize("name", ["", "RRTConnect", "RRTConnectkConfigDefault", "RRTstar", "BKPIECE1"])
def test_planners_by_their_names(name):
    assert planner_of(name).__name__ == (name.removesuffix("kConfigDefault") or "RRTConnect")


def test_other_planners_plan():
    plan(message(thing(at=(0, 0, 2)), planner_id="RRTkConfigDefault"))


def test_fields_that_a_type_does_not_have_are_named():
    with pytest.raises(ConfigurationError, match="no field 'grup_name'"):
        goal_of(message(grup_name="panda_arm"), "here", time_limit_s=1.0)


def test_waypoints_are_filled_in_on_straight_lines():
    corner = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.25], [1.0, 0.25]])
    filled = fill_in(corner)
    assert all(any(np.allclose(each, one) for one in filled) for each in corner)
    assert max(math.dist(one, other) for one, other in itertools.pairwise(filled)) <= 0.1 + 1e-9
    assert all(point[0] == 1.0 or point[1] == 0.0 for point in filled.tolist())


@pytest.fixture(scope="module")
def make_suite():
    sys.path.insert(0, str(EXAMPLE))
    try:
        return import_module("make_suite")
    finally:
        sys.path.remove(str(EXAMPLE))


def test_suite_is_what_its_script_writes(make_suite):
    written = make_suite.SUITE.read_text("utf-8")
    assert make_suite.to_yaml(make_suite.graded()) == written
    assert written.count("\n    set: ") == len(make_suite.problems()) == 30
    table = (EXAMPLE / "README.md").read_text("utf-8")
    assert all(f"| {each.name} | {each.grade} |" in table for each in make_suite.graded())


def suite_cases(name):
    return read_problems(PlanSpec(problems=str(EXAMPLE / "suite.yaml"))).cases(name)


def test_suite_has_sets_and_starts_and_goals_are_free():
    """Without time, a problem that can be begun fails with one code only."""
    of_grades = [case.name for grade in ("easy", "medium", "hard", "unsolvable") for case in suite_cases(grade)]
    assert sorted(of_grades) == sorted(case.name for case in suite_cases(ALL))
    for case in suite_cases(ALL):
        with pytest.raises(Failed) as caught:
            plan(case.message, time_limit_s=0.0)
        assert caught.value.code == ErrorCode.PLANNING_FAILED, f"{case.name}: {caught.value}"


def test_equal_seeds_plan_equal_paths_among_obstacles():
    (case,) = [each for each in suite_cases(ALL) if each.name == "table: over a low wall"]
    one, again, other = (plan(case.message, seed=seed).path for seed in (5, 5, 6))
    assert np.array_equal(one.positions, again.positions)
    assert one.positions.shape != other.positions.shape or not np.allclose(one.positions, other.positions)


@pytest.mark.acceptance
@pytest.mark.measures_time
def test_time_limit_in_half_of_the_seeds():
    """With the median of the times as its limit, a narrow problem is solved by some seeds."""
    (case,) = [each for each in suite_cases(ALL) if each.name == "passage: slot"]
    seeds = range(1, 9)
    times_s = sorted(plan(case.message, seed=seed).planning_time_s for seed in seeds)
    codes = []
    for seed in seeds:
        try:
            plan(case.message, seed=seed, time_limit_s=times_s[4])
        except Failed as failure:
            codes.append(failure.code)
    assert set(codes) == {ErrorCode.PLANNING_FAILED}
    assert 1 <= len(codes) <= 7
