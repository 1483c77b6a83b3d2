"""T1, T2, T2x and T4: latencies of the phases of a trial.

Source: `ldos:phase` and `ldos:plan`, all by one clock; for goals without markers, publications of the planner's
action (`metrics.unmarked`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pytest_ldos.base.series import Better, Missing
from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.base.units import ns_to_ms
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.measured import MeasuredMetric
from pytest_ldos.measure.metrics.model import (
    CPU_WORK,
    PLANNED_DURATION,
    PRIMARY_SHARE,
    SECONDARY_SHARE,
    Measurement,
    Window,
)
from pytest_ldos.measure.metrics.sources import FEEDBACK, FEEDBACK_AND_STATUS, MARKERS, STAMPS, STATUS, Source

_FLOOR_OF_WHOLE: Final = 0.01
"""Relative effect that matters of a whole motion, most of which the arm needs whatever the software does."""


def _span(without_markers: Source) -> Callable[[TrialContext, Window], Measurement]:
    """Measures the length of the window; for goals without markers, the source is another one."""

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


T1: Final = MeasuredMetric(
    name="T1",
    title="planning latency",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    adjust_for=(CPU_WORK,),
    error_share=PRIMARY_SHARE,
    largest_tolerable_mde=0.3,
    score_weight=1.0,
    window=TrialContext.planning_window,
    measure=_span(FEEDBACK),
    definition="MoveGroup feedback `PLANNING` → `MONITOR`",
    phases=(Phase.PLANNING, Phase.EXECUTING),
    path="planning",
    stage="planning",
)

T2: Final = MeasuredMetric(
    name="T2",
    title="execution latency",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    adjust_where_alike=(PLANNED_DURATION,),
    error_share=PRIMARY_SHARE / 2,
    largest_tolerable_mde=0.3,
    score_weight=1.0,
    window=TrialContext.execution_window,
    measure=_span(FEEDBACK_AND_STATUS),
    definition="`MONITOR` → result",
    phases=(Phase.EXECUTING, Phase.RESULT),
    path="execution",
    in_sweeps=False,
)

T2X: Final = MeasuredMetric(
    name="T2x",
    title="execution beyond the plan",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    error_share=SECONDARY_SHARE,
    largest_tolerable_mde=0.5,
    window=TrialContext.execution_window,
    measure=_span_beyond_plan,
    definition="T2 − duration of the planned trajectory",
    path="execution",
    refines="T2",
)

T4: Final = MeasuredMetric(
    name="T4",
    title="total latency",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    adjust_where_alike=(PLANNED_DURATION,),
    error_share=PRIMARY_SHARE,
    largest_tolerable_mde=0.3,
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
"""T1 of an action that is not MoveGroup's."""

EXECUTION: Final = replace(T2, adjust_where_alike=(), definition="begin of execution → result", in_sweeps=True)
"""T2 of such an action."""

WHOLE: Final = replace(T4, adjust_where_alike=())
"""T4 of a goal that plans no trajectory."""
