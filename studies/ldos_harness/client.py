"""The harness's client, ``client.py reach``, which sends its goal for each line; or a clock, ``client.py clock HZ``."""

import json
import sys
import time
from functools import partial
from typing import Any

import rclpy
from geometry_msgs.msg import Pose
from moveit_msgs.action import MoveGroup
from moveit_msgs.msg import BoundingVolume, Constraints, OrientationConstraint, PositionConstraint
from rclpy.action import ActionClient
from rosgraph_msgs.msg import Clock
from shape_msgs.msg import SolidPrimitive

ANSWER_S = 15.0


def publish_clock(rate_hz: float) -> None:
    rclpy.init()
    node = rclpy.create_node("clock")
    publisher, begin = node.create_publisher(Clock, "/clock", 10), time.monotonic()

    def tick() -> None:
        now = time.monotonic() - begin + 1
        message = Clock()
        message.clock.sec, message.clock.nanosec = int(now), int(now % 1 * 1e9)
        publisher.publish(message)

    node.create_timer(1 / rate_hz, tick)
    rclpy.spin(node)


def serve_reaches() -> None:
    """Sends the harness's goal for each line, and answers with its times."""
    rclpy.init()
    node = rclpy.create_node("benchmark_runner")
    client = ActionClient(node, MoveGroup, "/move_action")
    if not client.wait_for_server(timeout_sec=60.0):
        raise RuntimeError("no action server /move_action")
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        seen: dict[str, float] = {}
        sent = time.perf_counter()
        note = partial(note_state, seen)
        goal = client.send_goal_async(make_goal(), feedback_callback=note)
        rclpy.spin_until_future_complete(node, goal, timeout_sec=ANSWER_S)
        if not goal.done() or not goal.result().accepted:
            print(json.dumps({"code": None, "reason": "no answer" if not goal.done() else "refused"}), flush=True)
            continue
        result = goal.result().get_result_async()
        rclpy.spin_until_future_complete(node, result, timeout_sec=ANSWER_S)
        ended = time.perf_counter()
        code = result.result().result.error_code.val if result.done() else None
        began, moved = seen.get("PLANNING"), seen.get("MONITOR")
        times = {"t1": between(began, moved), "t2": between(moved, ended), "t4": between(sent, ended)}
        print(json.dumps({"code": code, **times}), flush=True)


def note_state(seen: dict[str, float], feedback: Any) -> None:
    seen.setdefault(feedback.feedback.state, time.perf_counter())


def between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None else round(1000 * (end - begin), 2)


def make_goal() -> MoveGroup.Goal:
    """The harness's goal: panda_link8 within 1 cm of (0.4, 0.2, 0.5), half as fast as it could."""
    goal = MoveGroup.Goal()
    request = goal.request
    request.group_name, request.num_planning_attempts, request.allowed_planning_time = "panda_arm", 3, 5.0
    request.planner_id = "RRTConnect"
    request.max_velocity_scaling_factor = request.max_acceleration_scaling_factor = 0.5
    request.workspace_parameters.header.frame_id = "panda_link0"
    for corner, value in (("min_corner", -1.0), ("max_corner", 1.0)):
        for axis in "xyz":
            setattr(getattr(request.workspace_parameters, corner), axis, value)
    pose = Pose()
    pose.position.x, pose.position.y, pose.position.z = 0.4, 0.2, 0.5
    region = BoundingVolume(primitives=[SolidPrimitive(type=SolidPrimitive.SPHERE, dimensions=[0.01])])
    region.primitive_poses.append(pose)
    position = PositionConstraint(link_name="panda_link8", constraint_region=region, weight=1.0)
    position.header.frame_id = "panda_link0"
    turned = OrientationConstraint(link_name="panda_link8", weight=1.0)
    turned.header.frame_id = "panda_link0"
    turned.orientation.x, turned.orientation.y, turned.orientation.w = 0.707, 0.707, 0.0
    turned.absolute_x_axis_tolerance = turned.absolute_y_axis_tolerance = turned.absolute_z_axis_tolerance = 0.1
    request.goal_constraints.append(Constraints(position_constraints=[position], orientation_constraints=[turned]))
    return goal


if __name__ == "__main__":
    if sys.argv[1] == "reach":
        serve_reaches()
    else:
        publish_clock(float(sys.argv[2]))
