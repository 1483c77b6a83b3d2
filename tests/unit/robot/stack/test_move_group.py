"""The planner's answers to goals it cannot plan for, with MoveIt's codes."""

from __future__ import annotations

import queue
from types import SimpleNamespace

import numpy as np
import pytest

from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.robot.dds.action import ActionClient, ActionServer, GoalStatus
from pytest_ldos.robot.dds.endpoint import default
from pytest_ldos.robot.dds.node import Node
from pytest_ldos.robot.stack.embedded import move_group
from pytest_ldos.robot.stack.embedded.move_group import Execution, MoveGroup, Planner
from pytest_ldos.robot.stack.embedded.panda import (
    CONTROLLER_ACTION,
    CONTROLLER_ACTION_TYPE,
    MOVE_ACTION,
    MOVE_ACTION_TYPE,
    Failed,
    load_panda,
    to_constraints,
    to_goal,
    to_robot_state,
    to_start,
)
from pytest_ldos.robot.stack.goals import HOME, REACH, ErrorCode, Goal, Pose, PoseError
from tests.builders.stressors import wait_until


@pytest.fixture(scope="module")
def panda():
    return load_panda()


@pytest.fixture
def planner(panda):
    return Planner(panda)


def request(**fields):
    values = {"allowed_planning_time": 60.0, "max_velocity_scaling_factor": 0.5, "max_acceleration_scaling_factor": 0.5}
    return default("moveit_msgs/msg/MotionPlanRequest", **{**values, **fields})


def joints_of(panda, values) -> Goal:
    return Goal("joints", joints=dict(zip(panda.joint_names, map(float, values), strict=True)))


def failure(planner, goal, start, **fields) -> Failed:
    with pytest.raises(Failed) as caught:
        planner.plan(goal, request(**fields), start, 1)
    return caught.value


def test_a_reach_is_planned(panda, planner):
    plan = planner.plan(REACH, request(), panda.ready, 1)
    assert plan.path.duration_s > 1
    assert plan.planning_time_s > 0


def test_out_of_reach(panda, planner):
    far = Goal("far", pose=Pose((1.4, 0, 0.5), (1, 0, 0, 0)))
    assert failure(planner, far, panda.ready).code == ErrorCode.NO_IK_SOLUTION


def test_a_goal_in_a_collision(panda, planner):
    floored = panda.ready.copy()
    floored[1], floored[3] = 1.7, -0.2
    assert failure(planner, joints_of(panda, floored), panda.ready).code == ErrorCode.GOAL_IN_COLLISION


def test_a_start_in_a_collision(panda, planner):
    floored = panda.ready.copy()
    floored[1], floored[3] = 1.7, -0.2
    assert failure(planner, REACH, floored).code == ErrorCode.START_STATE_IN_COLLISION


def test_goal_beyond_the_joint_limits(panda, planner):
    assert failure(planner, joints_of(panda, panda.upper + 0.1), panda.ready).code == ErrorCode.INVALID_GOAL_CONSTRAINTS


def test_planning_without_time(panda, planner):
    behind = Goal("behind", pose=Pose((0.6, -0.35, 0.25), (1, 0, 0, 0)))
    assert failure(planner, behind, panda.ready, allowed_planning_time=0.0).code == ErrorCode.PLANNING_FAILED


@pytest.mark.parametrize("scaling", [0.0, -0.5, 1.5, float("nan")])
def test_scaling_that_is_none_is_one(panda, planner, scaling):
    """As in MoveIt, whose default is 0."""
    whole = {"max_velocity_scaling_factor": 1.0, "max_acceleration_scaling_factor": 1.0}
    given = dict.fromkeys(whole, scaling)
    expected, found = (planner.plan(REACH, request(**each), panda.ready, 1).path.duration_s for each in (whole, given))
    assert found == expected


class Broken:
    """A planner with a fault of its own, once."""

    def __init__(self, planner):
        self._planner = planner
        self._is_broken = True

    def plan(self, *arguments, **more):
        if self._is_broken:
            self._is_broken = False
            raise ValueError("limits of nothing")
        return self._planner.plan(*arguments, **more)


def test_fault_of_the_planner_ends_the_goal(panda, planner, context, capsys):
    """The next goal is planned."""
    MoveGroup(Node(context, "move_group"), panda, Broken(planner))
    robot = Node(context, "robot")
    ActionServer(robot, CONTROLLER_ACTION_TYPE, CONTROLLER_ACTION, on_goal=lambda _: False, on_cancel=lambda _: None)
    states = robot.create_publisher("sensor_msgs/msg/JointState", "/joint_states")
    state = default("sensor_msgs/msg/JointState", name=[*panda.joint_names], position=panda.ready)
    robot.create_timer(10 * NS_PER_MS, lambda: states.publish(state))
    client = ActionClient(Node(context, "client"), MOVE_ACTION_TYPE, MOVE_ACTION)
    wait_until(client.server_is_ready)
    options = default("moveit_msgs/msg/PlanningOptions", plan_only=True)
    asked = request(group_name="panda_arm", goal_constraints=[to_constraints(REACH)])
    goal = default(f"{MOVE_ACTION_TYPE}_Goal", request=asked, planning_options=options)
    found: queue.Queue = queue.Queue()
    for number in range(2):
        client.send_goal(
            f"{number:032x}",
            goal,
            on_response=lambda _: None,
            on_feedback=lambda _: None,
            on_result=lambda status, result: found.put((status, result.error_code)),
        )
        status, error = found.get(timeout=60)
        if number == 0:
            assert (status, error.val) == (GoalStatus.ABORTED, ErrorCode.FAILURE)
            assert error.message == "move_group cannot plan this: ValueError: limits of nothing"
            assert "Traceback" in capsys.readouterr().err
        else:
            assert (status, error.val) == (GoalStatus.SUCCEEDED, ErrorCode.SUCCESS)


def test_injected_delay_is_part_of_the_planning_time(panda):
    slow = Planner(panda, planning_delay_s=0.25).plan(REACH, request(), panda.ready, 1)
    assert slow.planning_time_s > 0.25


def test_injected_delay_can_be_a_share_of_the_planning_time(panda, monkeypatch):
    times, slept = iter([10.0, 12.0, 13.0]), []
    clock = SimpleNamespace(monotonic=lambda: next(times), sleep=slept.append)
    monkeypatch.setattr(move_group, "time", clock)
    plan = Planner(panda, planning_delay_share=0.5).plan(REACH, request(), panda.ready, 1)
    assert slept == [1.0], "half of the time until then"
    assert plan.planning_time_s == 3.0


@pytest.mark.parametrize("goal", [REACH, HOME])
def test_goals_round_trip_as_constraints(panda, goal):
    back = to_goal([to_constraints(goal)], panda.joint_names)
    assert back.name == goal.name
    assert back.joints == goal.joints
    if goal.pose is not None:
        assert PoseError.between(back.pose, goal.pose).position_m < 1e-9


def refused(panda, constraints) -> Failed:
    with pytest.raises(Failed) as caught:
        to_goal(constraints, panda.joint_names)
    return caught.value


def test_constraints_without_a_goal(panda):
    none = default("moveit_msgs/msg/Constraints")
    assert refused(panda, []).code == ErrorCode.INVALID_GOAL_CONSTRAINTS
    assert refused(panda, [none]).code == ErrorCode.INVALID_GOAL_CONSTRAINTS
    assert refused(panda, [none, none]).code == ErrorCode.INVALID_GOAL_CONSTRAINTS
    some_joints = to_constraints(Goal("half", joints={"panda_joint1": 0.0}))
    assert refused(panda, [some_joints]).code == ErrorCode.INVALID_GOAL_CONSTRAINTS
    elbow = to_constraints(Goal("elbow", pose=REACH.pose, link="panda_link4"))
    assert refused(panda, [elbow]).code == ErrorCode.INVALID_LINK_NAME


def test_start_states_round_trip_and_are_optional(panda):
    assert to_start(to_robot_state(None), panda.joint_names) is None
    start = to_start(to_robot_state(HOME.joints), panda.joint_names)
    assert start.tolist() == list(HOME.joints.values())
    with pytest.raises(Failed, match="every joint"):
        to_start(to_robot_state({"panda_joint1": 0.0}), panda.joint_names)


def test_plans_do_not_depend_on_numpy_types(panda, planner):
    assert isinstance(planner.plan(HOME, request(), np.asarray(panda.ready), 2).planning_time_s, float)


class Controller:
    """Stands in for the client of the controller's action."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.cancelled: list[str] = []

    def send_goal(self, goal_id, message, **_):
        self.sent.append(goal_id)

    def cancel_goal(self, goal_id):
        self.cancelled.append(goal_id)


def test_goal_cancelled_while_planning_moves_nothing():
    controller = Controller()
    execution = Execution(controller)
    execution.cancel()
    execution.begin("00" * 16, default("control_msgs/action/FollowJointTrajectory_Goal"))
    with pytest.raises(Failed, match="cancelled"):
        execution.wait(1.0)
    assert (controller.sent, controller.cancelled) == ([], [])


def test_goal_cancelled_while_moving_is_cancelled_at_the_controller():
    controller = Controller()
    execution = Execution(controller)
    execution.begin("00" * 16, default("control_msgs/action/FollowJointTrajectory_Goal"))
    execution.cancel()
    with pytest.raises(Failed, match="cancelled"):
        execution.wait(1.0)
    assert controller.sent == controller.cancelled != []
