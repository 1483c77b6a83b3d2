"""What ran, rebuilt from a trace: as far as the metrics need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pytest_ldos.ctf.stats import ReadStats
from pytest_ldos.tracepoints import Phase

TimesNs = npt.NDArray[np.int64]
"""Nanoseconds since the epoch, in order; shape ``(n,)``."""


@dataclass(frozen=True)
class Plan:
    """What was planned for a goal (``ldos:plan``)."""

    duration_ns: int
    points: int


@dataclass(frozen=True, kw_only=True)
class TrialSpan:
    """One trial by its markers.

    Attributes:
        cpu_work_ns: what a fixed computation took on the planner's CPU right before it
            planned (``ldos:cpu_speed``); ``None`` where it was not timed.
        phases: when each phase was entered, nanoseconds since the epoch.
        end_ns, error_code: of ``ldos:trial_end``; ``None`` where the trial has no end.

    Tracepoints: ``ldos:trial_begin``, ``ldos:phase``, ``ldos:plan``, ``ldos:cpu_speed``, ``ldos:trial_end``.
    """

    goal_id: str
    scenario: str
    index: int
    begin_ns: int
    phases: Mapping[Phase, int]
    plan: Plan | None
    end_ns: int | None
    error_code: int | None
    cpu_work_ns: int | None = None


@dataclass(frozen=True)
class Publications:
    """Everything published on one topic by the observed processes.

    Tracepoints: ``rmw_publish``; the topic comes from ``rcl_publisher_init``.
    """

    topic: str
    times_ns: TimesNs


@dataclass(frozen=True, kw_only=True)
class ExecutionModel:
    """The observed processes' trials, loops and publications.

    Attributes:
        trials: by goal id, in the order of their beginnings.
        control_cycles: times of ``ldos:control_cycle``.
        sim_steps: times of ``ldos:sim_step``.
        sim_times_ns: simulated time at each step.
        publications: by topic.
        stats: what the trace lost.
    """

    trials: Mapping[str, TrialSpan]
    control_cycles: TimesNs
    sim_steps: TimesNs
    sim_times_ns: npt.NDArray[np.int64]
    publications: Mapping[str, Publications]
    stats: ReadStats
