"""Reads the trace of a rig and gives each trial its measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_ldos.ctf.read import read_trace
from pytest_ldos.errors import TraceUnreadable
from pytest_ldos.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.execution.model import ExecutionModel
from pytest_ldos.metrics.catalogue import METRICS
from pytest_ldos.metrics.extract import extract_trial
from pytest_ldos.metrics.model import Measurement
from pytest_ldos.metrics.regularity import nominal_period_ns
from pytest_ldos.series import Invalid
from pytest_ldos.trial.record import Trial
from pytest_ldos.trial.rig import Rig


def measure_trials(trials: Sequence[Trial], rig: Rig) -> list[Trial]:
    """The trials with what the trace says of them.

    The recording must be paused. A trace that cannot be read makes every trial invalid,
    with the reason.
    """
    try:
        trace = read_trace(rig.recorder.directory, events=NEEDED_EVENTS)
    except TraceUnreadable as error:
        distrusted = dict.fromkeys(METRICS, Measurement(Invalid(str(error))))
        return [replace(trial, measurements=distrusted) for trial in trials]
    model = build_execution(trace, pids=rig.stack.pids())
    return [_measure(trial, model, nominal_period_ns(rig.spec.control_rate_hz)) for trial in trials]


def _measure(trial: Trial, model: ExecutionModel, period_ns: int) -> Trial:
    measured = extract_trial(trial.goal_id, model, stamps_ns=trial.stamps_ns, nominal_period_ns=period_ns)
    return replace(
        trial,
        measurements=measured.measurements,
        segments_ns=measured.segments_ns,
        cpu_work_ns=measured.cpu_work_ns,
    )
