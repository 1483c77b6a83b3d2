"""Delay from the planner's feedback publication to its reception by the client.

The phases are marked when the client receives the feedback. Where the feedback publications are
in the trace, the delay between the two is a segment of its own, and T1 can be measured
without it.

Tracepoints: ``rmw_publish`` on ``…/_action/feedback``.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.trace.execution.action_goals import FEEDBACK
from pytest_ldos.trace.execution.model import ExecutionModel, TrialSpan

_FEEDBACK_PHASES: Final = (Phase.PLANNING, Phase.EXECUTING)

PLANNING_DELAY: Final = "planning feedback"
EXECUTING_DELAY: Final = "executing feedback"


def extract_reception(trial: TrialSpan, model: ExecutionModel, *, action: str) -> dict[str, int]:
    """Delay of the feedback that began each phase, nanoseconds, by segment name.

    A phase's feedback is the last one published before the client received it and after
    the goal was sent.

    Args:
        action: that the goals are sent to; a stack has other actions with feedback of their own.
    """
    published = model.publication_times_ns(action + FEEDBACK)
    sent_ns = trial.phases.get(Phase.GOAL_SENT)
    if sent_ns is None:
        return {}
    names = {Phase.PLANNING: PLANNING_DELAY, Phase.EXECUTING: EXECUTING_DELAY}
    delays = {}
    for phase in _FEEDBACK_PHASES:
        received_ns = trial.phases.get(phase)
        if received_ns is None:
            continue
        before = int(np.searchsorted(published, received_ns)) - 1
        if before >= 0 and published[before] >= sent_ns:
            delays[names[phase]] = received_ns - int(published[before])
    return delays
