"""Measures the trials on a rig, from its trace and from other sources."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Final

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.base.ros2 import PathSpec, Ros2
from pytest_ldos.base.series import Invalid, Moments
from pytest_ldos.host.process_resources import ResourceMeter
from pytest_ldos.measure.metrics.catalogue import METRICS, Catalogue
from pytest_ldos.measure.metrics.declared import (
    declared_in,
    refuse_absent,
    refuse_absent_nodes,
    refuse_unknown_loops,
    since,
)
from pytest_ldos.measure.metrics.extract import PathSegments, extract_trial, find_trial, kept_deadlines, span_of_stamps
from pytest_ldos.measure.metrics.latency import T1, T1_MEAN, PlanningSplits
from pytest_ldos.measure.metrics.model import NOTHING_OUTSIDE, Interfaces, Measurement, OutsideTrace, TraceFlow
from pytest_ldos.measure.metrics.regularity import nominal_period_ns
from pytest_ldos.measure.trial.record import MotionTrial
from pytest_ldos.measure.trial.rig import Rig
from pytest_ldos.scenario.metrics import DeadlineSpec
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.execution.scheduling import SCHEDULING_EVENTS, build_thread_states
from pytest_ldos.trace.flow.build import build_flow

RECEPTION: Final = "feedback reception"  # pseudo path of the client's own delays within T1 and T2


def measure_trials(
    trials: Sequence[MotionTrial],
    rig: Rig,
    paths: Sequence[PathSpec],
    *,
    catalogue: Catalogue = METRICS,
    deadlines: Sequence[DeadlineSpec] = (),
    own_pids: Collection[int] = (),
    scenario: str = "",
    outside: Mapping[str, OutsideTrace] | None = None,
) -> list[MotionTrial]:
    """Returns the trials with their measurements from the trace of a paused recording.

    If the trace cannot be read, every trial is invalid, with the reason.

    Args:
        paths: paths whose segments are kept with each trial; some have `deadlines`.
        own_pids: processes of the measurement; all others count as other processes.
        outside: measurements outside the trace, by goal id; the stimulus's numbers come from the trials.

    Raises:
        ConfigurationError: a path declares a link that the stack lacks.
    """
    try:
        trace = read_trace(rig.recorder.directory, events=NEEDED_EVENTS | SCHEDULING_EVENTS)
        states = build_thread_states(trace)
    except TraceUnreadable as error:
        distrusted = dict.fromkeys(catalogue, Measurement(Invalid(str(error))))
        return [replace(trial, measurements=distrusted) for trial in trials]
    model = build_execution(trace, pids=rig.stack.pids())
    flow = build_flow(model, paths)
    trace_flow = TraceFlow(lambda: flow)
    segments = PathSegments(flow, paths, thread_states=states if len(states) else None)
    splits = PlanningSplits(trace, states, own_pids)
    interfaces = Interfaces.of(rig.spec)
    offset_ns = trace.traces[0].clock_offset_ns if trace.traces else 0
    period_ns = nominal_period_ns(rig.spec.control_rate_hz)
    measured = []
    for trial in trials:
        stamps_ns = trial.stamps_ns
        if rig.spec.moves_arm:
            span = find_trial(
                trial.goal_id, model, stamps_ns=stamps_ns, clock_offset_ns=offset_ns, interfaces=interfaces
            )
        else:
            span = model.trials.get(trial.goal_id) or span_of_stamps(
                trial.goal_id, scenario=scenario, index=trial.index, stamps_ns=stamps_ns, clock_offset_ns=offset_ns
            )
        found = extract_trial(
            span,
            model,
            stamps_ns=stamps_ns,
            nominal_period_ns=period_ns,
            interfaces=interfaces,
            catalogue=catalogue,
            trace_flow=trace_flow,
            outside=replace((outside or {}).get(trial.goal_id, NOTHING_OUTSIDE), numbers=trial.numbers),
        )
        segments_ns = {} if found.trial is None else segments.of(found.trial)
        kept = {} if found.trial is None else kept_deadlines(found.trial, deadlines, paths, trace_flow)
        parts = {T1.name: splits.of(found.trial), T1_MEAN.name: splits.of_plans(found.trial)}
        made = replace(
            trial,
            measurements=_with_parts(found.measurements, parts),
            segments_ns={**segments_ns, RECEPTION: found.reception_ns} if found.reception_ns else segments_ns,
            deadlines=kept,
            cpu_work_ns=found.cpu_work_ns,
        )
        measured.append(made)
    return measured


def nodes_so_far(rig: Rig) -> list[str]:
    """Full names of the stack's nodes, from the trace of its start; raises `TraceUnreadable`."""
    rig.recorder.pause()
    try:
        trace = read_trace(rig.recorder.directory, events={Ros2.NODE_INIT})
        model = build_execution(trace, pids=rig.stack.pids())
    finally:
        rig.recorder.resume()
    return sorted(set(model.nodes["name"].drop_nulls()))


def _with_parts(
    measurements: Mapping[str, Measurement], parts: Mapping[str, Mapping[str, float]]
) -> Mapping[str, Measurement]:
    """Adds parts of metrics, by name, to the details of their measurements."""
    return {
        name: replace(found, details={**found.details, **parts[name]})
        if name in parts and found.number is not None
        else found
        for name, found in measurements.items()
    }


class OutsideMeter:
    """Measures trials outside the trace, as far as the catalogue's metrics need it; `found` is by goal id."""

    def __init__(self, rig: Rig, catalogue: Catalogue) -> None:
        self._rig = rig
        asked = declared_in(catalogue.values())
        self._of_processes = [spec for spec in asked if spec.kind.is_of_process]
        self._of_loops = [spec for spec in asked if spec.kind.is_of_loop]
        self.found: dict[str, OutsideTrace] = {}

    def begin(self, *, is_under_test: bool) -> None:
        """Prepares for trials of the warm stack.

        Raises:
            ConfigurationError: a stack under test lacks a metric's process, node or loop; the message lists those
                that it has. A base may lack them.
            Unavailable, BringUpFailed: the controller manager does not answer.
        """
        loops = self._loops() or {}
        if not is_under_test:
            return
        refuse_unknown_loops(self._of_loops, loops)
        if self._of_processes:
            refuse_absent(self._of_processes, list(self._rig.stack.processes().values()))
        if any(spec.node for spec in self._of_processes):
            refuse_absent_nodes(self._of_processes, nodes_so_far(self._rig))

    @contextmanager
    def measured(self, goal_id: str) -> Iterator[None]:
        stack = self._rig.stack
        before = self._loops()
        meter = ResourceMeter(stack.processes, stack.all_processes) if self._of_processes else None
        with meter or nullcontext():
            yield
            used = None if meter is None else meter.measure()
        loops = None if before is None else since(self._loops() or {}, before)
        self.found[goal_id] = OutsideTrace(resources=used, loops=loops)

    def _loops(self) -> Mapping[str, Moments] | None:
        """Statistics of the control loops so far; ``None`` if no metric needs them."""
        return self._rig.stack.loop_statistics() if self._of_loops else None
