"""T1mean: mean latency of planning a trial's goal again.

A motion takes seconds and gives one planning latency of some milliseconds, which varies with what the CPU did just
then. So the goal of each trial is planned again after its motion, from the same start with the same random numbers.

Source: `ldos:phase` and `ldos:plan` of goals that are planned and not executed, `ldos:cpu_speed` before each plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from pytest_ldos.base.series import Better, Missing
from pytest_ldos.base.units import NS_PER_MS
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.measured import MeasuredMetric
from pytest_ldos.measure.metrics.model import PLANS_CPU_WORK, PRIMARY_SHARE, Measurement, Window
from pytest_ldos.measure.metrics.sources import MARKERS


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
    """Mean of logarithms, as effects are ratios: one plan that took much longer moves it less than the plain mean."""
    return float(np.exp(np.mean(np.log(durations_ns)))) / NS_PER_MS


T1_MEAN: Final = MeasuredMetric(
    name="T1mean",
    title="planning latency, mean of repetitions",
    unit="ms",
    better=Better.LOWER,
    censored_by_failure=True,
    adjust_for=(PLANS_CPU_WORK,),
    error_share=PRIMARY_SHARE,
    largest_tolerable_mde=0.3,
    window=_requests_window,
    measure=_mean_latency,
    definition="geometric mean of up to 25 planning-only requests after the motion (`PLANNING` → result)",
    path="planning",
    refines="T1",
    in_sweeps=False,
)
