"""Latencies of a trial: T1, T1mean, T2, T2x, T4, service calls, parts of planning, and the quality of plans.

Source: `ldos:phase` and `ldos:plan`, on one clock; for goals without markers, publications of the planner's
action (`metrics.model`); for service calls, the stimulus ``service`` (`robot.stack.ros2.programs`).

A motion takes seconds and gives one planning latency of some milliseconds, which varies with the state of the CPU.
Therefore each trial's goal is planned again after the motion, from the same start with the same random numbers, each
time after `ldos:cpu_speed`, whose process is the planner.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.ros2 import Marker, Phase
from pytest_ldos.base.series import Better, Missing
from pytest_ldos.base.text import NS_PER_MS, ns_to_ms
from pytest_ldos.measure.metrics.model import (
    CPU_WORK,
    FEEDBACK,
    FEEDBACK_AND_STATUS,
    MARKERS,
    PLANNED_DURATION,
    PLANS_CPU_WORK,
    PLANS_WAITED_FOR_OTHERS,
    PRIMARY_SHARE,
    SECONDARY_SHARE,
    STAMPS,
    STATUS,
    STIMULUS,
    WAITED_FOR_OTHERS,
    MeasuredMetric,
    Measurement,
    Source,
    TrialContext,
    Window,
)
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.execution.scheduling import ProcessSplit, split_process
from pytest_ldos.trace.perf import thread_owners

_FLOOR_OF_WHOLE: Final = 0.01  # smallest relevant effect on a whole motion, most of which is the arm's own movement


def _span(without_markers: Source) -> Callable[[TrialContext, Window], Measurement]:
    """Measures the length of the window; goals without markers have another source."""

    def measure(context: TrialContext, window: Window) -> Measurement:
        source = (STAMPS if context.trial.is_stamped else MARKERS) if context.trial.marked else without_markers
        return Measurement(ns_to_ms(window[1] - window[0]), source=source)

    return measure


def _span_beyond_plan(context: TrialContext, window: Window) -> Measurement:
    plan = context.trial.plan
    if not context.trial.marked:
        return Measurement(Missing("no marker tells how long the planned trajectory lasts"))
    if plan is None:
        return Measurement(Missing("the trial has no planned trajectory to compare with"))
    return Measurement(ns_to_ms(window[1] - window[0] - plan.duration_ns), source=MARKERS)


_latency: Final = partial(
    MeasuredMetric, unit="ms", better=Better.LOWER, censored_by_failure=True, largest_tolerable_mde=0.3
)

T1: Final = _latency(
    name="T1",
    title="planning latency",
    adjust_for=(CPU_WORK,),
    error_share=PRIMARY_SHARE,
    score_weight=1.0,
    window=TrialContext.planning_window,
    measure=_span(FEEDBACK),
    definition="MoveGroup feedback `PLANNING` → `MONITOR`",
    phases=(Phase.PLANNING, Phase.EXECUTING),
    path="planning",
    stage="planning",
)

T2: Final = _latency(
    name="T2",
    title="execution latency",
    adjust_where_alike=(PLANNED_DURATION,),
    error_share=PRIMARY_SHARE / 2,
    score_weight=1.0,
    window=TrialContext.execution_window,
    measure=_span(FEEDBACK_AND_STATUS),
    definition="`MONITOR` → result",
    phases=(Phase.EXECUTING, Phase.RESULT),
    path="execution",
    in_sweeps=False,
)

T2X: Final = _latency(
    name="T2x",
    title="execution beyond the plan",
    error_share=SECONDARY_SHARE,
    largest_tolerable_mde=0.5,
    window=TrialContext.execution_window,
    measure=_span_beyond_plan,
    definition="T2 − duration of the planned trajectory",
    path="execution",
    refines="T2",
)

T4: Final = _latency(
    name="T4",
    title="total latency",
    adjust_where_alike=(PLANNED_DURATION,),
    error_share=PRIMARY_SHARE,
    usual_floor=_FLOOR_OF_WHOLE,
    score_weight=1.5,
    window=TrialContext.trial_window,
    measure=_span(STATUS),
    definition="goal sent → result",
    phases=(Phase.GOAL_SENT, Phase.RESULT),
    path="goal",
)

REACTION: Final = replace(
    T1,
    title="latency until execution begins",
    adjust_for=(),
    definition="goal sent → what the settings call the begin of execution",
)
"""T1 of an action other than MoveGroup's."""

EXECUTION: Final = replace(T2, adjust_where_alike=(), definition="begin of execution → result", in_sweeps=True)
"""T2 of an action other than MoveGroup's."""

WHOLE: Final = replace(T4, adjust_where_alike=())  # T4 of a goal that plans no trajectory


def _requests_window(context: TrialContext) -> Window | Missing:
    own, requests = context.planning_window(), context.trial.plan_requests
    if isinstance(own, Missing):
        return own
    return (requests[0].begin_ns, requests[-1].end_ns) if requests else Missing("the goal was not planned again")


def _mean_latency(context: TrialContext, window: Window) -> Measurement:
    requests = context.trial.plan_requests
    works = [request.cpu_work_ns for request in requests if request.cpu_work_ns is not None]
    speed = {PLANS_CPU_WORK: geometric_mean_ms(works)} if len(works) == len(requests) else {}
    latency_ms = geometric_mean_ms([request.end_ns - request.begin_ns for request in requests])
    return Measurement(latency_ms, {"plans": len(requests), **speed}, MARKERS)


def geometric_mean_ms(durations_ns: Sequence[int]) -> float:
    """Geometric mean: effects are ratios, and a single long plan has less weight than in the arithmetic mean."""
    return float(np.exp(np.mean(np.log(durations_ns)))) / NS_PER_MS


T1_MEAN: Final = _latency(
    name="T1mean",
    title="planning latency, mean of repetitions",
    adjust_for=(PLANS_CPU_WORK,),
    error_share=PRIMARY_SHARE,
    window=_requests_window,
    measure=_mean_latency,
    definition="geometric mean of up to 25 planning-only requests after the motion (`PLANNING` → result)",
    path="planning",
    refines="T1",
    in_sweeps=False,
)


class PlanningSplits:
    """Splits trials' planning by `build_thread_states`; `own_side` are the stack, loads, recorders and this process."""

    def __init__(self, trace: DecodedTrace, states: pl.DataFrame, own_side: Collection[int]) -> None:
        self._states = states
        self._own_side = own_side
        self._owners = thread_owners(trace) if len(states) else {}
        timed = trace.events.get(Marker.CPU_SPEED)
        pids = np.unique(timed["vpid"]).tolist() if timed is not None and "vpid" in timed.columns else []
        self._planner = pids[0] if len(pids) == 1 else None

    def of(self, trial: TrialSpan | None) -> Mapping[str, float]:
        """Parts of a trial's T1, ms; empty if unknown.

        Names: ``ran_ms``, ``waited_for_own_ms``, ``waited_for_strangers_ms``, ``blocked_ms``. Time not covered by
        context switches is in none of them.
        """
        phases = {} if trial is None else trial.phases
        begin_ns, end_ns = (phases.get(phase) for phase in (Phase.PLANNING, Phase.EXECUTING))
        found = None if begin_ns is None or end_ns is None else self._split(begin_ns, end_ns)
        if found is None:
            return {}
        return {**_parts([found]), WAITED_FOR_OTHERS: ns_to_ms(found.others)}

    def of_plans(self, trial: TrialSpan | None) -> Mapping[str, float]:
        """Parts of a trial's T1mean, ms; empty unless they are known for all its plans.

        Names: ``ran_ms``, ``waited_for_own_ms`` and ``blocked_ms``, means of the plans;
        ``plans_waited_for_strangers_ms``: T1mean minus its value without these waits.
        """
        requests = () if trial is None else trial.plan_requests
        found = [each for request in requests if (each := self._split(request.begin_ns, request.end_ns)) is not None]
        if not found or len(found) < len(requests) or any(each.others >= each.whole for each in found):
            return {}
        raised = geometric_mean_ms([each.whole for each in found])
        taken = raised - geometric_mean_ms([each.whole - each.others for each in found])
        return {**_parts(found), PLANS_WAITED_FOR_OTHERS: taken}

    def _split(self, begin_ns: int, end_ns: int) -> ProcessSplit | None:
        """Parts of the planner's time; ``None`` if unknown."""
        if self._planner is None or self._planner not in self._owners.values() or end_ns < begin_ns:
            return None
        found = split_process(
            self._states, self._owners, self._planner, begin_ns=begin_ns, end_ns=end_ns, own_side=self._own_side
        )
        return None if found.unknown == found.whole else found


def _parts(splits: Sequence[ProcessSplit]) -> dict[str, float]:
    """Means of the planner's own parts, ms."""
    return {
        f"{name}_ms": float(np.mean([getattr(each, part) for each in splits])) / NS_PER_MS
        for name, part in (("ran", "ran"), ("waited_for_own", "own"), ("blocked", "blocked"))
    }


def _number(name: str) -> Callable[[TrialContext, Window], Measurement]:
    """Measures one of the stimulus's numbers; the others are details."""

    def measure(context: TrialContext, _: Window) -> Measurement:
        found = context.outside.numbers.get(name)
        if found is None:
            return Measurement(Missing("the trial has no result"))
        others = {other: value for other, value in context.outside.numbers.items() if other != name}
        return Measurement(found, others, STIMULUS)

    return measure


CALL: Final = _latency(
    name="call",
    title="latency of a call",
    error_share=PRIMARY_SHARE,
    score_weight=1.0,
    window=TrialContext.trial_window,
    measure=_number("calls_mean_ms"),
    definition="geometric mean over a trial's calls, request → response",
)

CALL_P99: Final = _latency(
    name="call_p99",
    title="latency of a call, 99th percentile",
    error_share=SECONDARY_SHARE,
    largest_tolerable_mde=2.0,
    window=TrialContext.trial_window,
    measure=_number("calls_p99_ms"),
    definition="99th percentile over a trial's calls",
    refines="call",
)


PLANNING: Final = replace(T1, adjust_for=(), definition="request → answer of the planning service")
"""T1 of a planning problem."""


def _of_plan(name: str, title: str, unit: str, number: str) -> MeasuredMetric:
    return MeasuredMetric(
        name=name,
        title=title,
        unit=unit,
        better=Better.LOWER,
        error_share=SECONDARY_SHARE,
        window=TrialContext.trial_window,
        measure=_number(number),
        definition=f"{title}; planned, not executed",
    )


OF_PLANS: Final = (
    _of_plan("path_length", "length of the path in joints", "rad", "path_rad"),
    _of_plan("tool_path", "length of the path of the tool", "m", "tool_path_m"),
    _of_plan("trajectory", "duration of the trajectory", "s", "trajectory_s"),
    _of_plan("waypoints", "waypoints of the trajectory", "", "waypoints"),
)
