"""The process of the embedded stack for the stimulus ``plan``: asks `move_group` for plans, and nothing moves.

Tracepoints: ``ldos:trial_begin``, ``ldos:phase``, ``ldos:trial_end``.
"""

from __future__ import annotations

import json
import math
import queue
import threading
import uuid
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import require
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.robot.dds.action import ActionClient, GoalStatus, ParameterClient
from pytest_ldos.robot.dds.endpoint import Message, default
from pytest_ldos.robot.dds.node import Context, Node, run_node
from pytest_ldos.robot.stack.embedded.action_caller import LAYER, await_servers, serve_node
from pytest_ldos.robot.stack.embedded.panda import (
    FAILURE_PARAMETER,
    MOVE_ACTION,
    MOVE_ACTION_TYPE,
    SEED_PARAMETER,
    TIP_LINK,
    Kinematics,
    load_panda,
)
from pytest_ldos.robot.stack.goals import ErrorCode, OutcomeClass
from pytest_ldos.robot.stack.lines import Ended, Marks, Task
from pytest_ldos.robot.stack.messages import fill
from pytest_ldos.robot.stack.problems import EVERYTHING, numbers_of_plan, refuse_impossible
from pytest_ldos.scenario.model import FIRST_SEED
from pytest_ldos.scenario.stimuli import PlanSpec

_GRACE_S: Final = 5.0
_MAY_BE_SOLVED: Final = (ErrorCode.SUCCESS, ErrorCode.PLANNING_FAILED, ErrorCode.INVALID_MOTION_PLAN)


class ProblemPlanner:
    """Plans one problem at a time; its scene is set up before the time begins."""

    resets = False

    def __init__(self, node: Node, spec: PlanSpec) -> None:
        self._node = node
        self._spec = spec
        self._client = ActionClient(node, MOVE_ACTION_TYPE, MOVE_ACTION)
        self._parameters = ParameterClient(node, "move_group")
        self._kinematics = Kinematics(load_panda())

    def check(self, messages: Mapping[str, Mapping[str, Any]]) -> None:
        """Plans each problem without time, so that only a problem that no planner can solve gives another reason.

        Raises `ConfigurationError`, which names such problems, a missing planner, or a field that a type lacks.
        """
        tool, remedy = self._spec.tool, f'set tool = "{TIP_LINK}"'
        require(tool in {"", TIP_LINK}, f"the path of {tool} cannot be measured here", remedy=remedy)
        await_servers([self._client, self._parameters])
        wrong = []
        for where, message in messages.items():
            goal = goal_of(message, where, time_limit_s=0.0)
            if not self._spec.check:
                continue
            result = self._ask(Marks(id=uuid.uuid4().hex, trial=None), goal, FIRST_SEED)
            if result is None:
                wrong.append(f"{where}: the planner did not answer")
            elif result.error_code.val not in _MAY_BE_SOLVED:
                wrong.append(f"{where}: {result.error_code.message}")
        refuse_impossible(wrong, len(messages))

    def handle(self, task: Task) -> Ended:
        result = self._ask(task, goal_of(task.message, "the problem", time_limit_s=self._spec.time_limit_s), task.seed)
        if result is None:
            return task.end(OutcomeClass.TIMED_OUT, "the planner did not answer")
        if result.error_code.val != ErrorCode.SUCCESS:
            return task.end(OutcomeClass.PLANNING_FAILED, str(result.error_code.message))
        points = result.planned_trajectory.joint_trajectory.points
        numbers = numbers_of_plan(points)
        if self._spec.tool:
            places = [self._kinematics.forward(point.positions).position for point in points]
            numbers["tool_path_m"] = sum(math.dist(one, other) for one, other in pairwise(places))
        return task.end(OutcomeClass.SUCCESS, "", **numbers)

    def _ask(self, marks: Marks, goal: Message, seed: int | None) -> Message | None:
        """Returns the planner's result; ``None`` without one in time."""
        results: queue.SimpleQueue[Message | None] = queue.SimpleQueue()

        def begin(_: Sequence[str]) -> None:
            marks.begin()
            marks.enter(Phase.GOAL_SENT)
            self._client.send_goal(marks.id, goal, on_response=answered, on_feedback=fed_back, on_result=ended)

        def answered(accepted: bool) -> None:
            if accepted:
                marks.enter(Phase.GOAL_ACCEPTED)
            else:
                results.put(None)

        def fed_back(feedback: Message) -> None:
            if feedback.state == "PLANNING":
                marks.enter(Phase.PLANNING)

        def ended(_: GoalStatus, result: Message) -> None:
            marks.enter(Phase.EXECUTING)
            marks.enter(Phase.RESULT)
            results.put(result)

        wanted = {SEED_PARAMETER: seed, FAILURE_PARAMETER: None}
        self._node.executor.post(lambda: self._parameters.set(wanted, begin))
        try:
            return results.get(timeout=self._spec.time_limit_s + _GRACE_S)
        except queue.Empty:
            return None


def goal_of(message: Mapping[str, Any], where: str, *, time_limit_s: float) -> Message:
    limited = {**message["request"], "allowed_planning_time": time_limit_s}
    scene = message["scene"]
    if not scene.get("is_diff"):  # a whole scene is in place of the stack's own obstacles
        world = scene.get("world", {})
        scene = {**scene, "world": {**world, "collision_objects": [EVERYTHING, *world.get("collision_objects", [])]}}
    options = default(
        "moveit_msgs/msg/PlanningOptions",
        plan_only=True,
        planning_scene_diff=fill(default("moveit_msgs/msg/PlanningScene"), scene, where, LAYER),
    )
    request = fill(default("moveit_msgs/msg/MotionPlanRequest"), limited, where, LAYER)
    return default(f"{MOVE_ACTION_TYPE}_Goal", request=request, planning_options=options)


def build(context: Context, parameters: dict[str, Any]) -> None:
    """Parameters: ``spec``, and ``file``, JSON of ``messages`` by place."""
    node = Node(context, "ldos_problem_planner")
    planner = ProblemPlanner(node, PlanSpec(**parameters["spec"]))
    messages = json.loads(Path(parameters["file"]).read_text("utf-8"))
    threading.Thread(target=serve_node, args=(node, planner, messages), name="commands", daemon=True).start()


if __name__ == "__main__":
    run_node("problem_planner", build)
