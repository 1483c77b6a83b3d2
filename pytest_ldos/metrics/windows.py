"""The spans of a trial that metrics rest on."""

from __future__ import annotations

from pytest_ldos.metrics.model import Context, Window
from pytest_ldos.series import Missing
from pytest_ldos.tracepoints import Phase


def between(context: Context, first: Phase, last: Phase) -> Window | Missing:
    """From one phase to a later one."""
    phases = context.trial.phases
    for phase in (first, last):
        if phase not in phases:
            return Missing(f"the trial never entered phase '{phase}'")
    return phases[first], phases[last]


def planning_window(context: Context) -> Window | Missing:
    return between(context, Phase.PLANNING, Phase.EXECUTING)


def execution_window(context: Context) -> Window | Missing:
    return between(context, Phase.EXECUTING, Phase.RESULT)


def trial_window(context: Context) -> Window | Missing:
    return between(context, Phase.GOAL_SENT, Phase.RESULT)
