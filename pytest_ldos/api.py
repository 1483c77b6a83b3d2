"""The supported names without pytest.

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

from collections.abc import Sequence
from pathlib import Path

from pytest_ldos.ctf.read import DecodedTrace, read_trace
from pytest_ldos.execution.build import build_execution
from pytest_ldos.execution.clocks import shift_clocks
from pytest_ldos.execution.cpu_time import cpu_rivals, spans_of_runs, split_spans
from pytest_ldos.execution.model import ExecutionModel
from pytest_ldos.execution.scheduling import build_thread_states
from pytest_ldos.execution.store import read_model, write_model
from pytest_ldos.explain.explain import Explanation, explain
from pytest_ldos.export.perfetto.write import write_perfetto
from pytest_ldos.export.tracetools import to_tracetools_events
from pytest_ldos.flow.breakdown import break_down
from pytest_ldos.flow.build import build_flow
from pytest_ldos.flow.clocks import ClockOffset, estimate_clock_offsets
from pytest_ldos.flow.executors import executor_states
from pytest_ldos.flow.graph import FlowGraph
from pytest_ldos.flow.lineage import Kind, Lineage, LineageIndex
from pytest_ldos.flow.paths import PathInstances, find_path
from pytest_ldos.flow.timeliness import classify_receptions
from pytest_ldos.gate.decide import GateResult, decide
from pytest_ldos.gate.policy import Policy
from pytest_ldos.gate.verdict import Verdict
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.metrics.extract import TrialMetrics, extract_metrics
from pytest_ldos.metrics.model import Interfaces, Measurement
from pytest_ldos.metrics.sources import Source
from pytest_ldos.scenario.model import FaultSpec, ScenarioSpec, StackKind, StackSpec
from pytest_ldos.scenario.paths import LinkRule, LinkSpec, PathSpec
from pytest_ldos.scenario.ros2 import Ros2Spec, Simulation
from pytest_ldos.stack.goals import Goal, Pose
from pytest_ldos.trial.artifacts import new_run_folder, new_scenario_folder, read_trials
from pytest_ldos.trial.conduct import Observer, conduct
from pytest_ldos.trial.record import Trial, TrialSet
from pytest_ldos.trial.rig import open_rig

__all__ = [
    "ClockOffset",
    "DecodedTrace",
    "ExecutionModel",
    "Explanation",
    "FaultSpec",
    "FlowGraph",
    "GateResult",
    "Goal",
    "Interfaces",
    "Kind",
    "Lineage",
    "LineageIndex",
    "LinkRule",
    "LinkSpec",
    "Measurement",
    "Observer",
    "PathInstances",
    "PathSpec",
    "Policy",
    "Pose",
    "Ros2Spec",
    "ScenarioSpec",
    "Simulation",
    "Source",
    "StackKind",
    "StackSpec",
    "Trial",
    "TrialMetrics",
    "TrialSet",
    "Verdict",
    "break_down",
    "build_execution",
    "build_flow",
    "build_thread_states",
    "classify_receptions",
    "cpu_rivals",
    "decide",
    "estimate_clock_offsets",
    "executor_states",
    "explain",
    "extract_metrics",
    "find_path",
    "read_model",
    "read_trace",
    "read_trials",
    "run_trials",
    "shift_clocks",
    "spans_of_runs",
    "split_spans",
    "to_tracetools_events",
    "write_model",
    "write_perfetto",
]


def run_trials(
    scenario: ScenarioSpec,
    *,
    output: Path,
    goals: Sequence[Goal] | str = "reach",
    observer: Observer | None = None,
) -> TrialSet:
    """Starts a recorded stack, makes the trials of a scenario without loads, ends everything.

    Args:
        output: gets the run's folder, with the record, the logs and the trace.
        goals: or the name of one of the stack's goal sets.

    Raises:
        MachineBusy, Unavailable, RecordingFailed, BringUpFailed: see `open_rig`.
    """
    with measuring_lock():
        folder = new_scenario_folder(new_run_folder(output), scenario.name)
        with open_rig(scenario.stack, folder) as rig:
            chosen = rig.stack.goal_book.goals(goals) if isinstance(goals, str) else goals
            return conduct(rig, scenario, chosen, observer=observer)
