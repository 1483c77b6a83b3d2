"""Input of a metric (one trial and the model of its trace), and metrics with their functions.

MoveGroup's server publishes the feedback ``PLANNING`` twice, and ``MONITOR`` right before it sends the planned
trajectory to a controller, which then accepts a goal of ``FollowJointTrajectory``. ``MONITOR`` is therefore the last
feedback before the first status of a controller. No event contains the text of a feedback, the outcome or the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import PathSpec, Phase
from pytest_ldos.base.series import Invalid, Missing, Moments
from pytest_ldos.host.process_resources import StackUse
from pytest_ldos.measure.metrics.model import USUAL, Interfaces, Measurement, Metric, Window
from pytest_ldos.trace.ctf.stats import describe_losses
from pytest_ldos.trace.execution.coverage import name_missing
from pytest_ldos.trace.execution.goals import STATUS, ActionGoal, find_action_goals
from pytest_ldos.trace.execution.model import ExecutionModel, TimesNs, TrialSpan
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.lineage import PathInstances, find_path

CONTROLLER_STATUS: Final = f"/follow_joint_trajectory{STATUS}"


def find_unmarked(model: ExecutionModel, action: str) -> Mapping[str, TrialSpan]:
    """Goals of an action under generated names (``/move_action 1``), ordered by begin."""
    topics = [topic for topic in model.topics() if topic.endswith(CONTROLLER_STATUS)]
    statuses = [np.empty(0, np.int64), *(model.publication_times_ns(topic) for topic in topics)]
    controllers = np.sort(np.concatenate(statuses))
    spans = {}
    for index, goal in enumerate(find_action_goals(model, action)):
        times_ns = {Phase.RESULT: goal.result_ns}
        if goal.accepted_ns is not None:
            times_ns |= {Phase.GOAL_ACCEPTED: goal.accepted_ns, Phase.PLANNING: goal.feedback_ns[0]}
            times_ns |= {Phase.EXECUTING: _began_execution(goal, controllers)}
        goal_id = f"{action} {index + 1}"
        spans[goal_id] = TrialSpan(
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
    return spans


def _began_execution(goal: ActionGoal, controllers: TimesNs) -> int | None:
    """The last feedback before a controller's first status within the goal; the first feedback is not ``MONITOR``."""
    last_ns = np.iinfo(np.int64).max if goal.result_ns is None else goal.result_ns
    within = controllers[(controllers > goal.feedback_ns[0]) & (controllers < last_ns)]
    before: Sequence[int] = [at for at in goal.feedback_ns[1:] if len(within) and at < within[0]]
    return before[-1] if before else None


class TraceFlow:
    """The flow graph of a trace, built on first use, with a cache of the paths searched in it."""

    def __init__(self, build: Callable[[], FlowGraph]) -> None:
        self._build = build
        self._found: dict[PathSpec, PathInstances] = {}

    @cached_property
    def graph(self) -> FlowGraph:
        return self._build()

    def find_path(self, path: PathSpec) -> PathInstances:
        if path not in self._found:
            self._found[path] = find_path(self.graph, path)
        return self._found[path]


@dataclass(frozen=True, kw_only=True)
class OutsideTrace:
    """Measurements of a trial outside its trace; ``None`` if not measured.

    Attributes:
        numbers: reported by the stimulus.
        loops: statistics of the controller manager.
    """

    numbers: Mapping[str, float] = field(default_factory=dict)
    resources: StackUse | None = None
    loops: Mapping[str, Moments] | None = None


NOTHING_OUTSIDE: Final = OutsideTrace()


@dataclass(frozen=True, kw_only=True)
class TrialContext:
    """One trial and its trace.

    Attributes:
        trial: its phases, plan and error code.
        model: execution model of the whole trace.
        nominal_period_ns: of the control loop.
        trace_flow: message flow of the whole trace.
        outside: measurements of the trial outside its trace.
    """

    trial: TrialSpan
    model: ExecutionModel
    nominal_period_ns: int
    trace_flow: TraceFlow
    interfaces: Interfaces = USUAL
    outside: OutsideTrace = NOTHING_OUTSIDE

    @property
    def flow(self) -> FlowGraph:
        """Message-flow graph; built on first use, once for all trials."""
        return self.trace_flow.graph

    def passages(self, path: PathSpec, window: Window) -> pl.DataFrame:
        """Passages along a path that ended within a window.

        Columns: `begin_ns`, `end_ns`, `latency_ns` and the others of `PathInstances`.

        Raises:
            ConfigurationError: the search found too many partial passages.
        """
        found = self.trace_flow.find_path(path).table
        return found.filter(pl.col("end_ns").is_between(*window))

    def not_seen(self, reason: str) -> Missing:
        """The reason why a metric has no value, with the events that the trace lacks."""
        without = name_missing(self.model)
        return Missing(f"{reason}, or the trace does not show it ({without})" if without else reason)

    def planning_window(self) -> Window | Missing:
        return self.between(Phase.PLANNING, Phase.EXECUTING)

    def execution_window(self) -> Window | Missing:
        return self.between(Phase.EXECUTING, Phase.RESULT)

    def trial_window(self) -> Window | Missing:
        return self.between(self.trial.first_phase, Phase.RESULT)

    def between(self, first: Phase, last: Phase) -> Window | Missing:
        """Span from one phase to a later one, or the reason why there is none."""
        phases = self.trial.phases
        missing = next((phase for phase in (first, last) if phase not in phases), None)
        if missing is None:
            return phases[first], phases[last]
        if not self.trial.marked and Phase.GOAL_ACCEPTED not in phases:
            return Missing("that the goal was accepted is not in the trace")
        if missing is Phase.EXECUTING and not self.trial.marked:
            topics = self.model.publishers["topic"].drop_nulls()
            if not any(topic.endswith(CONTROLLER_STATUS) for topic in topics):
                return Missing("no action of a controller is in the trace, which would tell when execution began")
        return Missing(f"the trial never entered phase '{missing}'")


@dataclass(frozen=True, kw_only=True)
class MeasuredMetric(Metric):
    """See `Metric`.

    Attributes:
        window: time span of the measurement, or the reason why there is none.
        measure: measures the value in that window.
        definition: start and end of the span, or the statistic, as Markdown.
        phases: first and last phase, if the goal client's stamps of these check it.
        path: causal path whose latency it is; empty if it is none.
        refines: name of the metric that it is a part or tail of; brief tables omit it.
        stage: stage of a motion that it measures, for the search for the first failing stage; empty for none.
        in_sweeps: True if sweep tables and progress lines show it.
    """

    window: Callable[[TrialContext], Window | Missing | Invalid]
    measure: Callable[[TrialContext, Window], Measurement]
    definition: str = ""
    phases: tuple[Phase, Phase] | None = None
    path: str = ""
    refines: str = ""
    stage: str = ""
    in_sweeps: bool = True

    def latency_ns(self, entered: Mapping[str, int] | Mapping[Phase, int]) -> int | None:
        """Returns the time between its phases, from the time of each phase; ``None`` if one is missing."""
        if self.phases is None or not entered.keys() >= set(self.phases):
            return None
        first, last = self.phases
        return entered[last] - entered[first]

    def take(self, context: TrialContext) -> Measurement:
        """Measures a trial; invalid if the trace lost events in the window."""
        window = self.window(context)
        if isinstance(window, Missing | Invalid):
            return Measurement(window)
        losses = describe_losses(context.model.stats.gaps_within(*window))
        if losses:
            return Measurement(Invalid(f"{losses} while it was measured"))
        return self.measure(context, window)


def require_action(model: ExecutionModel, interfaces: Interfaces, usual: Interfaces) -> None:
    """Raises `ConfigurationError` if no node in the trace serves an action other than the usual one."""
    served = [topic.removesuffix(STATUS) for topic in model.publishers["topic"].drop_nulls() if topic.endswith(STATUS)]
    if interfaces.action not in {usual.action, *served}:
        there = f"served are: {', '.join(sorted(served))}" if served else "none is served in it"
        raise ConfigurationError(f"no action {interfaces.action} in the trace", remedy=there)
