"""Planning problems from MoveIt's messages, from its text format, and by hand."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.stack.problems import ALL, read_problems, read_scene
from pytest_ldos.scenario.stimuli import PlanSpec

REQUEST = """
group_name: panda_arm
planner_id: BKPIECEGood
allowed_planning_time: 60
start_state: {joint_state: {name: [panda_joint1], position: [0.5]}}
goal_constraints:
  - joint_constraints:
      - {joint_name: panda_joint1, position: -1.9}
      - {joint_name: panda_joint2, position: 0.3, tolerance_above: 0.5}
"""
SCENE = "world: {collision_objects: [{id: can}]}\n"
BY_HAND = """
group: arm
frame: base
start: {joint_1: 0.0}
problems:
  - name: over
    objects: [{box: [0.4, 1.0, 0.02], position: [0.5, 0.0, 0.3]}]
    goal: {joints: {joint_1: 1.2}}
  - name: pose
    set: hard
    start: {joint_1: 1.0}
    goal: {link: tool, pose: {position: [0.5, 0.0, 0.6], orientation: [1, 0, 0, 0]}}
"""
WITH_POSES = """table
* shelf
0.5 0.0 0.2
0 0 0 1
1
box
0.4 1.0 0.02
0 0 0
0 0 0 1
0 0 0 0
0
.
"""
WITHOUT_POSES = """table
* can
1
cylinder
0.03 0.14
0.5 0.1 0.2
0 0 0 1
0 0 0 0
.
"""


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def requests_of(path, **settings):
    book = read_problems(PlanSpec(problems=str(path), **settings))
    return {case.name: case.message for case in book.cases(ALL)}


def test_folder_of_messages(tmp_path):
    write(
        tmp_path,
        {
            f"{family}/{kind}0001.yaml": text
            for family in ("cage", "shelf")
            for kind, text in (("request", REQUEST), ("scene", SCENE))
        },
    )
    book = read_problems(PlanSpec(problems=str(tmp_path)))
    assert {name: [case.name for case in cases] for name, cases in book.sets.items()} == {
        "all": ["cage 0001", "shelf 0001"],
        "cage": ["cage 0001"],
        "shelf": ["shelf 0001"],
    }
    objects = [{"id": "can", "header": {"frame_id": "world"}}]
    assert book.cases("cage")[0].message["scene"]["world"]["collision_objects"] == objects


def test_settings_replace_planner_and_limits(tmp_path):
    write(tmp_path, {"request0001.yaml": REQUEST, "scene0001.yaml": SCENE})
    request = requests_of(tmp_path, time_limit_s=2.0)["0001"]["request"]
    assert (request["planner_id"], request["allowed_planning_time"], request["max_velocity_scaling_factor"]) == (
        "",
        2.0,
        1.0,
    )
    request = requests_of(tmp_path, planner="PRMstar", pipeline="ompl")["0001"]["request"]
    assert (request["planner_id"], request["pipeline_id"]) == ("PRMstar", "ompl")


def test_joints_without_tolerances_get_usual_ones(tmp_path):
    write(tmp_path, {"request0001.yaml": REQUEST, "scene0001.yaml": SCENE})
    first, second = requests_of(tmp_path)["0001"]["request"]["goal_constraints"][0]["joint_constraints"]
    assert (first["tolerance_above"], first["tolerance_below"], first["weight"]) == (0.001, 0.001, 1.0)
    assert second["tolerance_above"] == 0.5


def test_problems_by_hand(tmp_path):
    file = write(tmp_path, {"problems.yaml": BY_HAND}) / "problems.yaml"
    over, pose = requests_of(file).values()
    book = read_problems(PlanSpec(problems=str(file)))
    assert {name: [case.name for case in cases] for name, cases in book.sets.items()} == {
        "all": ["over", "pose"],
        "hard": ["pose"],
    }
    assert [*book.all_messages] == ["goal set 'all', goal 'over'", "goal set 'all', goal 'pose'"]
    removed, box = over["scene"]["world"]["collision_objects"]
    assert removed == {"id": "", "operation": 1}
    assert (box["header"]["frame_id"], box["primitives"]) == ("base", [{"type": "box", "dimensions": [0.4, 1.0, 0.02]}])
    assert over["request"]["start_state"]["joint_state"] == {"name": ["joint_1"], "position": [0.0]}
    assert pose["request"]["start_state"]["joint_state"]["position"] == [1.0]
    (goal,) = pose["request"]["goal_constraints"]
    assert goal["position_constraints"][0]["link_name"] == "tool"
    assert goal["orientation_constraints"][0]["orientation"] == (1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"request0001.yaml": REQUEST}, "has no scene"),
        ({"readme.txt": "nothing"}, "has no planning problem"),
        ({"request0001.yaml": "[", "scene0001.yaml": SCENE}, "is not YAML"),
    ],
)
def test_folder_that_is_no_suite(tmp_path, files, message):
    write(tmp_path, files)
    with pytest.raises(ConfigurationError, match=message):
        requests_of(tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("name: over", "nmae: over", "nmae"),
        ("box:", "boks:", "boks"),
        ("goal: {joints: {joint_1: 1.2}}", "goal: {joints: {joint_1: .nan}}", "finite"),
        ("goal: {joints: {joint_1: 1.2}}", "goal: {}", "pose or joints"),
        ("box: [0.4, 1.0, 0.02], ", "", "0 shapes"),
        (
            "0.0, 0.3]}]",
            ".nan, 0.3]}]",
            "problem 'over': scene.world.collision_objects.1.primitive_poses.0.position.1 is",
        ),
        ("start: {joint_1: 1.0}", "start: {joint_1: .inf}", "problem 'pose': request.start_state"),
        ("name: pose", "name: over", "two problems are called 'over'"),
        ("problems:", "others:", "others"),
        (BY_HAND, "problems: []", "has no planning problem"),
    ],
)
def test_file_that_is_no_suite(tmp_path, before, after, message):
    file = write(tmp_path, {"problems.yaml": BY_HAND.replace(before, after)}) / "problems.yaml"
    with pytest.raises(ConfigurationError, match=message):
        requests_of(file)


def test_text_format_with_poses_of_objects(tmp_path):
    file = write(tmp_path, {"table.scene": WITH_POSES}) / "table.scene"
    (shelf,) = read_scene(file, "world")
    assert shelf["id"] == "shelf"
    assert shelf["pose"] == {"position": [0.5, 0.0, 0.2], "orientation": [0.0, 0.0, 0.0, 1.0]}
    assert shelf["primitives"] == [{"type": "box", "dimensions": [0.4, 1.0, 0.02]}]


def test_text_format_without_poses_of_objects(tmp_path):
    file = write(tmp_path, {"table.scene": WITHOUT_POSES}) / "table.scene"
    (can,) = read_scene(file, "world")
    assert can["primitives"] == [{"type": "cylinder", "dimensions": [0.14, 0.03]}]
    assert can["primitive_poses"] == [{"position": [0.5, 0.1, 0.2], "orientation": [0.0, 0.0, 0.0, 1.0]}]


def test_text_format_that_is_cut_is_refused(tmp_path):
    file = write(tmp_path, {"table.scene": WITHOUT_POSES.partition("0.5 0.1")[0]}) / "table.scene"
    with pytest.raises(ConfigurationError, match="it ends before its numbers"):
        read_scene(file, "world")


def test_text_format_with_mesh_is_refused(tmp_path):
    file = write(tmp_path, {"table.scene": WITHOUT_POSES.replace("cylinder", "mesh")}) / "table.scene"
    with pytest.raises(ConfigurationError, match="shape 'mesh'"):
        read_scene(file, "world")
