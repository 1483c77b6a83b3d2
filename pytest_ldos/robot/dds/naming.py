"""Mapping of ROS 2 names to DDS names.

Reference: "Topic and Service name mapping to DDS", design.ros2.org; `rmw_cyclonedds_cpp`
of Jazzy does the same.
"""

from __future__ import annotations

ACTION_FEEDBACK = "/_action/feedback"
ACTION_STATUS = "/_action/status"


def dds_topic(ros_topic: str) -> str:
    """``/joint_states`` → ``rt/joint_states``."""
    return f"rt{ros_topic}"


def dds_request_topic(service: str) -> str:
    """``/add_two_ints`` → ``rq/add_two_intsRequest``."""
    return f"rq{service}Request"


def dds_reply_topic(service: str) -> str:
    """``/add_two_ints`` → ``rr/add_two_intsReply``."""
    return f"rr{service}Reply"


def dds_type(ros_type: str) -> str:
    """``sensor_msgs/msg/JointState`` → ``sensor_msgs::msg::dds_::JointState_``."""
    package, kind, name = ros_type.split("/")
    return f"{package}::{kind}::dds_::{name}_"
