"""The process of the stimulus ``plan``: sets scenes up and asks MoveIt for plans; nothing moves."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from geometry_msgs.msg import PoseStamped
from moveit_msgs import srv
from moveit_msgs.msg import MotionPlanRequest, MoveItErrorCodes, PlanningScene, PlanningSceneComponents, RobotState
from rclpy.node import Node
from scipy.spatial.transform import Rotation

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.lines import Ended, Task
from pytest_ldos.robot.stack.messages import fill
from pytest_ldos.robot.stack.problems import numbers_of_plan, refuse_impossible
from pytest_ldos.robot.stack.ros2.programs import Program, run
from pytest_ldos.scenario.stimuli import PlanSpec

_DISCOVERY_S: Final = 10.0
_ANSWER_S: Final = 5.0
_IK_S: Final = 4  # for each goal: solvers restart at random, and most answer at once
_GRACE_S: Final = 5.0


class ProblemPlanner(Program):
    """Plans one problem at a time; its scene is set up before the time begins."""

    def __init__(self, node: Node, spec: PlanSpec) -> None:
        super().__init__(node)
        self._spec = spec
        prefix = spec.service.rpartition("/")[0]
        self._plan = node.create_client(srv.GetMotionPlan, spec.service)
        self._apply = node.create_client(srv.ApplyPlanningScene, f"{prefix}/apply_planning_scene")
        self._validity = node.create_client(srv.GetStateValidity, f"{prefix}/check_state_validity")
        self._ik = node.create_client(srv.GetPositionIK, f"{prefix}/compute_ik")
        self._fk = node.create_client(srv.GetPositionFK, f"{prefix}/compute_fk")
        self._planners = node.create_client(srv.QueryPlannerInterfaces, f"{prefix}/query_planner_interface")
        self._current = node.create_client(srv.GetPlanningScene, f"{prefix}/get_planning_scene")
        self._scene: Mapping[str, Any] | None = None

    def check(self, messages: Mapping[str, Mapping[str, Any]]) -> None:
        """Sets each scene up, and checks start and goal in it; raises `ConfigurationError`, which names them."""
        for client in self._node.clients:
            if not client.wait_for_service(timeout_sec=_DISCOVERY_S):
                raise ConfigurationError(f"there is no service {client.srv_name}", remedy="move_group serves it")
        found = self._ask(self._planners, srv.QueryPlannerInterfaces.Request()).planner_interfaces
        own = [each for each in found if self._spec.pipeline in {"", each.pipeline_id}]
        # OMPL's are GROUP[PLANNER]; MoveIt plans by the default if it does not know the name.
        known = {each.rpartition("[")[2].rstrip("]") for one in own for each in one.planner_ids}
        if known and (planner := self._spec.planner).rpartition("[")[2].rstrip("]") not in {"", *known}:
            raise ConfigurationError(f"no pipeline has a planner {planner!r}", remedy=suggest(planner, known))
        state = PlanningSceneComponents(components=PlanningSceneComponents.ROBOT_STATE)
        robot = self._ask(self._current, srv.GetPlanningScene.Request(components=state)).scene.robot_state
        wrong = []
        for where, message in messages.items():
            request = fill(MotionPlanRequest(), message["request"], where)
            reason = _unknown_joint(robot, request, fill(PlanningScene(), message["scene"], where))
            if not reason and self._spec.check:
                self._set_up(message["scene"], where)
                reason = self._impossible(request)
            wrong += [f"{where}: {reason}"] if reason else []
        refuse_impossible(wrong, len(messages))

    def _impossible(self, request: MotionPlanRequest) -> str:
        """The reason why no planner can solve a problem in the present scene; empty if none is known."""
        if not self._has_group(request.group_name):
            return f"the robot has no group '{request.group_name}'"
        if reason := self._invalid(request.start_state, request.group_name):
            return f"its start {reason}"
        reasons = []
        for goal in request.goal_constraints:
            if goal.joint_constraints:
                joints = {each.joint_name: each.position for each in goal.joint_constraints}
                reason = self._invalid(_with_joints(request.start_state, joints), request.group_name)
                reasons.append(f"its goal {reason}" if reason else "")
            elif goal.position_constraints and goal.orientation_constraints:
                reasons.append(self._out_of_reach(request, goal))
        return reasons[0] if reasons and all(reasons) else ""

    @cache  # noqa: B019 - there is one planner in its process
    def _has_group(self, name: str) -> bool:
        wanted = srv.GetPositionIK.Request()
        wanted.ik_request.group_name, wanted.ik_request.robot_state.is_diff = name, True
        return bool(self._ask(self._ik, wanted).error_code.val != MoveItErrorCodes.INVALID_GROUP_NAME)

    def _invalid(self, state: RobotState, group: str) -> str:
        answer = self._ask(self._validity, srv.GetStateValidity.Request(robot_state=state, group_name=group))
        if answer.valid:
            return ""
        touching = [f"{each.contact_body_1} with {each.contact_body_2}" for each in answer.contacts]
        return f"is in collision: {touching[0]}" if touching else "is not a valid state"

    def _out_of_reach(self, request: MotionPlanRequest, goal: Any) -> str:
        position, orientation = goal.position_constraints[0], goal.orientation_constraints[0]
        wanted = srv.GetPositionIK.Request()
        asked = wanted.ik_request
        asked.group_name, asked.robot_state, asked.avoid_collisions = request.group_name, request.start_state, True
        asked.ik_link_name = position.link_name
        asked.pose_stamped.header = position.header
        asked.pose_stamped.pose.position = position.constraint_region.primitive_poses[0].position
        asked.pose_stamped.pose.orientation = orientation.orientation
        asked.timeout.sec = _IK_S  # MoveIt 2.12 ignores fractions of a second
        code = self._ask(self._ik, wanted).error_code.val
        if code == MoveItErrorCodes.FRAME_TRANSFORM_FAILURE:  # without TF; planning needs none
            of_link = srv.GetPositionFK.Request(
                robot_state=request.start_state, fk_link_names=[position.header.frame_id]
            )
            if not (found := self._ask(self._fk, of_link).pose_stamped):
                return ""  # of an object, which the planner knows
            asked.pose_stamped = _within(found[0], asked.pose_stamped.pose)
            code = self._ask(self._ik, wanted).error_code.val
        return "" if code == MoveItErrorCodes.SUCCESS else f"its goal cannot be reached: {_name_of(code)}"

    def handle(self, task: Task) -> Ended:
        self._set_up(task.message["scene"], "the scene")
        request = fill(MotionPlanRequest(), task.message["request"], "the request")
        if task.seed is not None:
            for goal in request.goal_constraints:
                goal.name += f"#ldos_seed={task.seed}"  # for ldos_planner; others ignore the name
        task.begin()
        task.enter(Phase.GOAL_SENT)
        task.enter(Phase.PLANNING)
        call = self._plan.call_async(srv.GetMotionPlan.Request(motion_plan_request=request))
        if not self._await(call, self._spec.time_limit_s + _GRACE_S):
            return task.end(OutcomeClass.TIMED_OUT, "MoveIt did not answer")
        task.enter(Phase.EXECUTING)
        task.enter(Phase.RESULT)
        answer = call.result().motion_plan_response
        if answer.error_code.val != MoveItErrorCodes.SUCCESS:
            return task.end(OutcomeClass.PLANNING_FAILED, _name_of(answer.error_code.val))
        trajectory = answer.trajectory.joint_trajectory
        numbers = numbers_of_plan(trajectory.points)
        if self._spec.tool:
            numbers["tool_path_m"] = self._tool_path_m(trajectory)
        return task.end(OutcomeClass.SUCCESS, "", **numbers)

    def _tool_path_m(self, trajectory: Any) -> float:
        places = []
        for point in trajectory.points:
            request = srv.GetPositionFK.Request(fk_link_names=[self._spec.tool])
            request.robot_state.joint_state.name = trajectory.joint_names
            request.robot_state.joint_state.position = point.positions
            request.robot_state.is_diff = True
            position = self._ask(self._fk, request).pose_stamped[0].pose.position
            places.append((position.x, position.y, position.z))
        return sum(math.dist(one, other) for one, other in pairwise(places))

    def _set_up(self, scene: Mapping[str, Any], where: str) -> None:
        if scene != self._scene:
            message = fill(PlanningScene(), scene, where)
            if not self._ask(self._apply, srv.ApplyPlanningScene.Request(scene=message)).success:
                raise ConfigurationError(f"{where}: MoveIt does not take the scene", remedy="see the log of move_group")
            self._scene = scene

    def _ask(self, client: Any, request: Any) -> Any:
        call = client.call_async(request)
        if not self._await(call, _ANSWER_S):
            raise ConfigurationError(f"{client.srv_name} did not answer", remedy="see the log of move_group")
        return call.result()


def _unknown_joint(robot: RobotState, request: MotionPlanRequest, scene: PlanningScene) -> str:
    """Names a joint that the robot does not have, which would end MoveIt; empty if all are known."""
    known, multiple = {*robot.joint_state.name}, {*robot.multi_dof_joint_state.joint_names}
    goals = [each.joint_name for goal in request.goal_constraints for each in goal.joint_constraints]
    given = (*request.start_state.joint_state.name, *goals, *scene.robot_state.joint_state.name)
    unknown = [each for each in given if each not in known and each.rpartition("/")[0] not in multiple]
    return f"the robot has no joint '{unknown[0]}': {suggest(unknown[0], known)}" if unknown else ""


def _within(frame: PoseStamped, pose: Any) -> PoseStamped:
    """A pose in the frame of another one, in that one's frame."""
    turn, inner = (Rotation.from_quat([q.x, q.y, q.z, q.w]) for q in (frame.pose.orientation, pose.orientation))
    made = PoseStamped(header=frame.header)
    way = turn.apply([pose.position.x, pose.position.y, pose.position.z])
    for axis, value in zip("xyz", way, strict=True):
        setattr(made.pose.position, axis, getattr(frame.pose.position, axis) + value)
    for axis, value in zip("xyzw", (turn * inner).as_quat(), strict=True):
        setattr(made.pose.orientation, axis, value)
    return made


def _with_joints(start: RobotState, joints: Mapping[str, float]) -> RobotState:
    positions = {**dict(zip(start.joint_state.name, start.joint_state.position, strict=False)), **joints}
    state = RobotState(multi_dof_joint_state=start.multi_dof_joint_state, is_diff=start.is_diff)
    state.joint_state.name, state.joint_state.position = [*positions], [*positions.values()]
    return state


def _name_of(code: int) -> str:
    names = {getattr(MoveItErrorCodes, name): name for name in dir(type(MoveItErrorCodes)) if name.isupper()}
    return names.get(code, f"error code {code}")


def main() -> None:
    """Serves the stimulus: ``argv[1]`` is a file of JSON with ``spec`` and ``messages`` (by place)."""
    settings = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    run("ldos_problem_planner", settings, lambda node: ProblemPlanner(node, PlanSpec(**settings["spec"])))


if __name__ == "__main__":
    main()
