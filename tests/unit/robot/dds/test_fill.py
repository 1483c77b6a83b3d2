"""Messages built from plain values of a user's file."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.robot.dds.messages import decode, encode, fill, is_known

GOAL = "control_msgs/action/FollowJointTrajectory_Goal"


def test_fields_keep_their_values_and_others_their_defaults():
    values = {
        "trajectory": {
            "joint_names": ["a", "b"],
            "points": [{"positions": [0, 1.5], "time_from_start": {"sec": 2}}],
        }
    }
    message = fill(GOAL, values, "the goal")
    again = decode(encode(message), GOAL)
    (point,) = again.trajectory.points
    assert again.trajectory.joint_names == ["a", "b"]
    assert np.array_equal(point.positions, [0.0, 1.5])
    assert (point.time_from_start.sec, point.time_from_start.nanosec, len(point.velocities)) == (2, 0, 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"trajectroy": {}}, "did you mean 'trajectory'?"),
        ({"trajectory": {"joint_nmaes": []}}, "did you mean 'joint_names'?"),
        ({"trajectory": 3}, "a table of fields"),
        ({"trajectory": {"joint_names": "a"}}, "it must be a list"),
        ({"trajectory": {"joint_names": [1]}}, "of type string"),
        ({"trajectory": {"points": [{"positions": ["x"]}]}}, "of type float64"),
        ({"trajectory": {"points": [{"time_from_start": {"sec": 1.5}}]}}, "of type int32"),
    ],
)
def test_unknown_fields_and_wrong_types_are_refused(values, message):
    with pytest.raises(ConfigurationError) as caught:
        fill(GOAL, values, "goal 'nod'")
    assert caught.value.message.startswith("goal 'nod'")
    assert message in caught.value.remedy


def test_known_types():
    assert is_known(GOAL)
    assert not is_known("control_msgs/action/FollowTheLeader_Goal")
