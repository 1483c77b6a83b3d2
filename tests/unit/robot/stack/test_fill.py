"""Messages built from plain values of a user's file."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.dds.endpoint import decode, default, encode, is_known, type_names
from pytest_ldos.robot.stack.messages import MessageLayer, fill, require_number

LAYER = MessageLayer(default, type_names)
GOAL = "control_msgs/action/FollowJointTrajectory_Goal"


def test_fields_keep_their_values_and_others_their_defaults():
    values = {
        "trajectory": {
            "joint_names": ["a", "b"],
            "points": [{"positions": [0, 1.5], "time_from_start": {"sec": 2}}],
        }
    }
    message = fill(default(GOAL), values, "the goal", LAYER)
    again = decode(encode(message), GOAL)
    (point,) = again.trajectory.points
    assert again.trajectory.joint_names == ["a", "b"]
    assert np.array_equal(point.positions, [0.0, 1.5])
    assert (point.time_from_start.sec, point.time_from_start.nanosec, len(point.velocities)) == (2, 0, 0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"trajectroy": {}}, "did you mean 'trajectory'?"),
        ({"trajectory": {"joint_nmaes": []}}, "did you mean 'joint_names'?"),
        ({"trajectory": 3}, "its type is trajectory_msgs/JointTrajectory"),
        ({"trajectory": {"joint_names": "a"}}, "its type is sequence<string>"),
        ({"trajectory": {"joint_names": [1]}}, "its type is string"),
        ({"trajectory": {"points": [{"positions": ["x"]}]}}, "its type is double"),
        ({"trajectory": {"points": [{"time_from_start": {"sec": 1.5}}]}}, "its type is int32"),
        ({"trajectory": {"points": [{"time_from_start": {"sec": 1 << 31}}]}}, "its type is int32"),
    ],
)
def test_unknown_fields_and_wrong_types_are_refused(values, words):
    with pytest.raises(ConfigurationError) as caught:
        fill(default(GOAL), values, "goal 'nod'", LAYER)
    assert caught.value.message.startswith("goal 'nod'")
    assert words in f"{caught.value.message} {caught.value.remedy}"


MOVE_GROUP = "moveit_msgs/action/MoveGroup_Goal"


def test_points_may_be_lists():
    values = {"request": {"workspace_parameters": {"min_corner": [-1, -2, -3]}}}
    corner = fill(default(MOVE_GROUP), values, "the goal", LAYER).request.workspace_parameters.min_corner
    assert (corner.x, corner.y, corner.z) == (-1.0, -2.0, -3.0)


def test_list_of_another_length_is_no_point():
    values = {"request": {"workspace_parameters": {"min_corner": [-1, -2]}}}
    with pytest.raises(ConfigurationError, match="its type is geometry_msgs/Vector3"):
        fill(default(MOVE_GROUP), values, "the goal", LAYER)


def test_known_types():
    assert is_known(GOAL)
    assert not is_known("control_msgs/action/FollowTheLeader_Goal")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("point.x", ""),
        ("header.stamp.sec", ""),
        ("point.w", "/where has no field 'point.w' known are: x, y, z"),
        ("poin.x", "/where has no field 'poin.x' did you mean 'point'?"),
        ("point.x.y", "/where has no field 'point.x.y' name a field that is a number"),
        ("point", "field 'point' of /where is no number, but geometry_msgs/Point name a field that is a number"),
        ("header.frame_id", "field 'header.frame_id' of /where is no number, but string name a field that is a number"),
    ],
)
def test_numbers_of_a_message(field, words):
    kind = "geometry_msgs/msg/PointStamped"
    try:
        require_number(default(kind), field, "/where", LAYER)
        said = ""
    except ConfigurationError as error:
        said = f"{error.message} {error.remedy}"
    assert said == words
