"""T1, T2, T2x and T4: how long the phases of a trial took.

Source: `ldos:phase` and `ldos:plan`, all by one clock.
"""

from __future__ import annotations

from typing import Final

from pytest_ldos.metrics.model import Context, Measurement, Metric, Window
from pytest_ldos.metrics.windows import execution_window, planning_window, trial_window
from pytest_ldos.series import Better, Missing
from pytest_ldos.units import ns_to_ms

PLANNED_DURATION: Final = "planned_duration_ms"
"""Covariate: how long the planned trajectory lasts."""

CPU_WORK: Final = "cpu_work_ms"
"""Covariate: what a fixed computation took on the planner's CPU right before it planned."""


def _span(_: Context, window: Window) -> Measurement:
    return Measurement(ns_to_ms(window[1] - window[0]))


def _span_beyond_plan(context: Context, window: Window) -> Measurement:
    plan = context.trial.plan
    if plan is None:
        return Measurement(Missing("the trial has no planned trajectory to compare with"))
    return Measurement(ns_to_ms(window[1] - window[0] - plan.duration_ns))


T1: Final = Metric(
    name="T1",
    title="planning latency",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    adjust_for=(CPU_WORK,),
    largest_tolerable_mde=0.3,
    window=planning_window,
    measure=_span,
)

T2: Final = Metric(
    name="T2",
    title="execution latency",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    adjust_for=(PLANNED_DURATION,),
    largest_tolerable_mde=0.3,
    window=execution_window,
    measure=_span,
)

T2X: Final = Metric(
    name="T2x",
    title="execution beyond the plan",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    largest_tolerable_mde=0.5,
    window=execution_window,
    measure=_span_beyond_plan,
)

T4: Final = Metric(
    name="T4",
    title="total latency",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    adjust_for=(PLANNED_DURATION,),
    largest_tolerable_mde=0.3,
    window=trial_window,
    measure=_span,
)
