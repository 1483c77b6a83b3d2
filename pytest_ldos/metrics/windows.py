"""The spans of a trial that metrics rest on."""

from __future__ import annotations

from pytest_ldos.metrics.model import Context, Window
from pytest_ldos.metrics.unmarked import has_controllers
from pytest_ldos.series import Missing
from pytest_ldos.tracepoints import Phase


def between(context: Context, first: Phase, last: Phase) -> Window | Missing:
    """From one phase to a later one."""
    phases = context.trial.phases
    for phase in (first, last):
        if phase not in phases:
            return Missing(_why_not(context, phase))
    return phases[first], phases[last]


def _why_not(context: Context, phase: Phase) -> str:
    if not context.trial.marked and Phase.GOAL_ACCEPTED not in context.trial.phases:
        return "that the goal was accepted is not in the trace"
    if phase is Phase.EXECUTING and not context.trial.marked and not has_controllers(context.model):
        return "no action of a controller is in the trace, which would tell when execution began"
    return f"the trial never entered phase '{phase}'"


def planning_window(context: Context) -> Window | Missing:
    return between(context, Phase.PLANNING, Phase.EXECUTING)


def execution_window(context: Context) -> Window | Missing:
    return between(context, Phase.EXECUTING, Phase.RESULT)


def trial_window(context: Context) -> Window | Missing:
    return between(context, context.trial.first_phase, Phase.RESULT)
