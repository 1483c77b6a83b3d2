"""Goals without markers: the phases of MoveGroup from the publications of its server.

The server of MoveGroup publishes the feedback ``PLANNING``, twice, and ``MONITOR`` right before it gives the
planned trajectory to a controller, which makes the controller accept a goal of ``FollowJointTrajectory``.
``MONITOR`` is therefore the last feedback before the first status of a controller. No event contains the text of a
feedback, the outcome or the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.trace.execution.action_goals import STATUS, ActionGoal, find_action_goals
from pytest_ldos.trace.execution.model import ExecutionModel, TimesNs, TrialSpan

CONTROLLER_STATUS: Final = f"/follow_joint_trajectory{STATUS}"


def find_unmarked(model: ExecutionModel, action: str) -> Mapping[str, TrialSpan]:
    """Goals of an action under generated names (``/move_action 1``), ordered by begin."""
    controllers = _controller_statuses(model)
    goals = enumerate(find_action_goals(model, action))
    spans = [_span(goal, index, goal_id=f"{action} {index + 1}", controllers=controllers) for index, goal in goals]
    return {span.goal_id: span for span in spans}


def has_controllers(model: ExecutionModel) -> bool:
    """True if the trace shows when controllers accept trajectories."""
    return any(topic.endswith(CONTROLLER_STATUS) for topic in model.publishers["topic"].drop_nulls())


def _controller_statuses(model: ExecutionModel) -> TimesNs:
    topics = [topic for topic in model.topics() if topic.endswith(CONTROLLER_STATUS)]
    return np.sort(np.concatenate([np.empty(0, np.int64), *(model.publication_times_ns(topic) for topic in topics)]))


def _span(goal: ActionGoal, index: int, *, goal_id: str, controllers: TimesNs) -> TrialSpan:
    times_ns = {Phase.RESULT: goal.result_ns}
    if goal.accepted_ns is not None:
        times_ns |= {Phase.GOAL_ACCEPTED: goal.accepted_ns, Phase.PLANNING: goal.feedback_ns[0]}
        times_ns |= {Phase.EXECUTING: _began_execution(goal, controllers)}
    return TrialSpan(
        goal_id=goal_id,
        scenario="",
        index=index,
        begin_ns=goal.begin_ns,
        phases={phase: time_ns for phase, time_ns in times_ns.items() if time_ns is not None},
        plan=None,
        end_ns=goal.result_ns,
        error_code=None,
        marked=False,
    )


def _began_execution(goal: ActionGoal, controllers: TimesNs) -> int | None:
    """The last feedback before a controller's first status within the goal; the first feedback is not ``MONITOR``."""
    last_ns = np.iinfo(np.int64).max if goal.result_ns is None else goal.result_ns
    within = controllers[(controllers > goal.feedback_ns[0]) & (controllers < last_ns)]
    before: Sequence[int] = [at for at in goal.feedback_ns[1:] if len(within) and at < within[0]]
    return before[-1] if before else None
