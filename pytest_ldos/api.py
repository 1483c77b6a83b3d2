"""The supported names without pytest.

Example::

    from pytest_ldos import api

    trace = api.read_trace("traces/session")
    model = api.build_execution(trace)
    for goal, measured in api.extract_metrics(model, nominal_period_ns=2_000_000).items():
        print(goal, measured.measurements["T1"].value, measured.measurements["T1"].source)

    flow = api.build_flow(model)
    feedback = api.find_path(flow, api.PathSpec(name="feedback", via=("/joint_states", "/tf"), deadline_ms=10))
    assert feedback.missed == 0
    where = api.break_down(flow, feedback).group_by("kind").agg(pl.col("duration_ns").sum())
    with Path("session.pftrace").open("wb") as file:
        api.write_perfetto(model, file, flow=flow, thread_states=api.build_thread_states(trace))

    head = api.run_trials(api.ScenarioSpec(name="baseline", trials=10), output=Path(".ldos"))
    base = api.read_trials(Path("baselines/…/baseline.json"))
    result = api.decide(head, base, api.Policy())
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from pytest_ldos.base.ros2 import BUILT_IN_PATHS, LinkRule, LinkSpec, PathSpec, Phase
from pytest_ldos.base.series import Better, Invalid, Missing
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import GateResult, decide
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.summary import Explanation, explain
from pytest_ldos.launching import RecordedLaunch, record_launch
from pytest_ldos.measure.load.protocol import apply_loads
from pytest_ldos.measure.metrics.catalogue import OwnMetric
from pytest_ldos.measure.metrics.extract import TrialMetrics, extract_metrics
from pytest_ldos.measure.metrics.model import Interfaces, Measurement, Metric, Source, TrialContext, Window
from pytest_ldos.measure.metrics.own_events import recorded_for
from pytest_ldos.measure.trial.artifacts import new_run_folder, new_scenario_folder, read_trials
from pytest_ldos.measure.trial.conduct import Observer, conduct
from pytest_ldos.measure.trial.record import Trial, TrialSet
from pytest_ldos.measure.trial.rig import open_rig
from pytest_ldos.robot.stack.goals import Goal, Pose
from pytest_ldos.scenario.loads import (
    CacheLoadSpec,
    CpuLimitSpec,
    CpuLoadSpec,
    DdsFloodSpec,
    IoLoadSpec,
    MemoryLoadSpec,
    NetworkImpairmentSpec,
    SchedulerGroup,
)
from pytest_ldos.scenario.metrics import DeadlineSpec, parse_metrics
from pytest_ldos.scenario.model import FaultSpec, Ros2Spec, ScenarioSpec, StackSpec
from pytest_ldos.scenario.words import Simulation, StackKind
from pytest_ldos.show.export.perfetto import write_perfetto
from pytest_ldos.trace.assertions import (
    assert_callback_ran,
    assert_event,
    assert_flow,
    assert_order,
    assert_published,
    assert_received,
)
from pytest_ldos.trace.ctf.read import DecodedTrace, open_in_windows, read_trace
from pytest_ldos.trace.execution.build import build_execution, build_execution_in_windows
from pytest_ldos.trace.execution.model import ExecutionModel, read_model, write_model
from pytest_ldos.trace.execution.scheduling import build_thread_states, cpu_rivals, spans_of_runs, split_spans
from pytest_ldos.trace.execution.threads import shift_clocks
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.critical import break_down
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.lineage import Kind, Lineage, LineageIndex, PathInstances, find_path
from pytest_ldos.trace.flow.summary import executor_states
from pytest_ldos.trace.flow.timeliness import classify_receptions
from pytest_ldos.trace.flow.transport import ClockOffset, estimate_clock_offsets
from pytest_ldos.trace.patterns import callback_began, callback_ended, entered, event, published, received

__all__ = [
    "Better",
    "CacheLoadSpec",
    "ClockOffset",
    "CpuLimitSpec",
    "CpuLoadSpec",
    "DdsFloodSpec",
    "DeadlineSpec",
    "DecodedTrace",
    "ExecutionModel",
    "Explanation",
    "FaultSpec",
    "FlowGraph",
    "GateResult",
    "Goal",
    "Interfaces",
    "Invalid",
    "IoLoadSpec",
    "Kind",
    "Lineage",
    "LineageIndex",
    "LinkRule",
    "LinkSpec",
    "Measurement",
    "MemoryLoadSpec",
    "Metric",
    "Missing",
    "NetworkImpairmentSpec",
    "Observer",
    "OwnMetric",
    "PathInstances",
    "PathSpec",
    "Phase",
    "Policy",
    "Pose",
    "RecordedLaunch",
    "Ros2Spec",
    "ScenarioSpec",
    "SchedulerGroup",
    "Simulation",
    "Source",
    "StackKind",
    "StackSpec",
    "Trial",
    "TrialContext",
    "TrialMetrics",
    "TrialSet",
    "Verdict",
    "Window",
    "assert_callback_ran",
    "assert_event",
    "assert_flow",
    "assert_order",
    "assert_published",
    "assert_received",
    "break_down",
    "build_execution",
    "build_execution_in_windows",
    "build_flow",
    "build_thread_states",
    "callback_began",
    "callback_ended",
    "classify_receptions",
    "cpu_rivals",
    "decide",
    "entered",
    "estimate_clock_offsets",
    "event",
    "executor_states",
    "explain",
    "extract_metrics",
    "find_path",
    "open_in_windows",
    "published",
    "read_model",
    "read_trace",
    "read_trials",
    "received",
    "record_launch",
    "run_trials",
    "shift_clocks",
    "spans_of_runs",
    "split_spans",
    "write_model",
    "write_perfetto",
]


def run_trials(
    scenario: ScenarioSpec,
    *,
    output: Path,
    goals: Sequence[Goal] | str | None = None,
    own: Iterable[OwnMetric] = (),
    metrics: Sequence[str] = (),
    observer: Observer | None = None,
) -> TrialSet:
    """Starts a recorded stack, makes the trials of a scenario under its loads, and ends everything.

    Args:
        output: folder for the run's folder, with the record, the logs and the trace.
        goals: or the name of one of the stack's goal sets; by default the scenario's.
        own: metrics of your own, measured in addition to the built-in ones.
        metrics: further metrics, as in the setting `metrics`: ``["cpu:move_group"]``; paths are the built-in ones.

    Raises:
        ConfigurationError: an own metric has a name that is taken; a metric of an unknown path, or of a process that
            the stack does not have.
        MachineBusy, Unavailable, RecordingFailed, BringUpFailed, LoadFailed: see `open_rig` and `apply_loads`.
    """
    declared = parse_metrics(list(metrics), BUILT_IN_PATHS, where="metrics")
    with measuring_lock():
        folder = new_scenario_folder(new_run_folder(output), scenario.name)
        with open_rig(scenario.stack, folder, events=recorded_for(declared)) as rig:
            wanted = scenario.goals if goals is None else goals
            chosen = rig.stack.stimulus.cases(wanted) if isinstance(wanted, str) else wanted
            disturb = partial(apply_loads, scenario.loads, rig.site)
            return conduct(rig, scenario, chosen, disturb=disturb, own=own, declared=declared, observer=observer)
