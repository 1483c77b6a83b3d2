"""Names of the actions and parameters between the nodes."""

from __future__ import annotations

from typing import Final

CONTROLLER_ACTION: Final = "/panda_arm_controller/follow_joint_trajectory"
CONTROLLER_ACTION_TYPE: Final = "control_msgs/action/FollowJointTrajectory"
MOVE_ACTION: Final = "/move_action"
MOVE_ACTION_TYPE: Final = "moveit_msgs/action/MoveGroup"
SEED_PARAMETER: Final = "planner_seed"
FAILURE_PARAMETER: Final = "planted_failure"
"""A fault to plant: the error code with which the next goal ends; unset for none."""
