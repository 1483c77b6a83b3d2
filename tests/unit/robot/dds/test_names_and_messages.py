"""ROS 2's names, types and encodings."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.robot.dds import endpoint
from pytest_ldos.robot.dds.endpoint import describe_type

ALL_TYPES = [
    "sensor_msgs/msg/JointState",
    "tf2_msgs/msg/TFMessage",
    "rosgraph_msgs/msg/Clock",
    "std_msgs/msg/String",
    "rcl_interfaces/srv/SetParameters_Request",
    *(
        f"{action}_{part}"
        for action in ("moveit_msgs/action/MoveGroup", "control_msgs/action/FollowJointTrajectory")
        for part in (
            "SendGoal_Request",
            "SendGoal_Response",
            "GetResult_Request",
            "GetResult_Response",
            "FeedbackMessage",
        )
    ),
]


def test_name_mapping():
    assert endpoint.dds_topic("/joint_states") == "rt/joint_states"
    assert endpoint.dds_request_topic("/move_action/_action/send_goal") == "rq/move_action/_action/send_goalRequest"
    assert endpoint.dds_reply_topic("/a") == "rr/aReply"
    assert describe_type("sensor_msgs/msg/JointState").__idl_typename__ == "sensor_msgs.msg.dds_.JointState_"
    goal = describe_type("moveit_msgs/action/MoveGroup_Goal")
    assert goal.__idl_typename__ == "moveit_msgs.action.dds_.MoveGroup_Goal_"


@pytest.mark.parametrize("ros_type", ALL_TYPES)
def test_every_type_round_trips_and_has_a_description(ros_type):
    message = endpoint.default(ros_type)
    data = endpoint.encode(message)
    assert len(data) % 4 == 0
    assert endpoint.encode(endpoint.decode(data, ros_type)) == data
    package, kind, name = ros_type.split("/")
    assert describe_type(ros_type).__idl_typename__ == f"{package}.{kind}.dds_.{name}_"


def test_encoding_equals_that_of_the_binding():
    """The codec and the interpreted one of the Cyclone DDS binding write the same bytes."""
    described = describe_type("std_msgs/msg/String")
    assert endpoint.encode(endpoint.default("std_msgs/msg/String", data="abc")) == described(data="abc").serialize()
    clock = endpoint.default("rosgraph_msgs/msg/Clock")
    clock.clock.sec, clock.clock.nanosec = 3, 4
    described_time = describe_type("builtin_interfaces/msg/Time")
    described_clock = describe_type("rosgraph_msgs/msg/Clock")
    assert endpoint.encode(clock) == described_clock(clock=described_time(sec=3, nanosec=4)).serialize()


def test_numbers_are_arrays():
    state = endpoint.default("sensor_msgs/msg/JointState", name=["a"], position=np.array([1.5]))
    back = endpoint.decode(endpoint.encode(state), "sensor_msgs/msg/JointState")
    assert back.position.tolist() == [1.5]
    assert back.name == ["a"]
    assert back.velocity.tolist() == []


def test_an_unknown_field_is_an_error():
    with pytest.raises(TypeError):
        endpoint.default("std_msgs/msg/String", text="abc")


def test_type_hash_matches_rep_2016():
    """Expected: the hash that Jazzy's `ros2 topic info --verbose` prints for /joint_states."""
    expected = "RIHS01_a13ee3a330e346c9d87b5aa18d24e11690752bd33a0350f11c5882bc9179260e"
    assert endpoint.type_hash("sensor_msgs/msg/JointState") == expected
