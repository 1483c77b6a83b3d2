"""Extracts all metrics of a trial and the segments of its paths, and checks them against the goal client's stamps.

The client stamps each phase when it marks it. If latencies from markers and stamps differ, the recording (or the
client's clock) is wrong, and the trial is invalid. The client marks a phase when it receives the feedback. If the trace
has the feedback's publications (``rmw_publish`` on ``…/_action/feedback``), the delay between the two is a separate
segment, and T1 can be measured without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.ros2 import PathSpec, Phase
from pytest_ldos.base.series import Invalid
from pytest_ldos.base.text import NS_PER_MS, ns_to_ms
from pytest_ldos.measure.metrics.catalogue import METRICS, Catalogue, OwnMetric, catalogue_of
from pytest_ldos.measure.metrics.declared import in_traces
from pytest_ldos.measure.metrics.model import (
    NOTHING_OUTSIDE,
    USUAL,
    Interfaces,
    Measurement,
    OutsideTrace,
    TraceFlow,
    TrialContext,
    find_unmarked,
)
from pytest_ldos.scenario.metrics import DeadlineSpec, MetricSpec
from pytest_ldos.trace.ctf.stats import describe_losses
from pytest_ldos.trace.execution.goals import FEEDBACK
from pytest_ldos.trace.execution.model import ExecutionModel, TrialSpan
from pytest_ldos.trace.execution.observed import OwnEvents
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.critical import CriticalPaths, SegmentKind, break_down
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.lineage import PathInstances, find_path

LATENCY: Final = "latency"  # name of a path's total latency, listed with its segments
SegmentsNs = Mapping[str, Mapping[str, int]]
"""By path, then by segment (``KIND: SUBJECT``): the median over a trial's passages, nanoseconds."""

_SEPARATOR: Final = ": "


def kind_of(segment: str) -> SegmentKind | None:
    """Kind of a segment; ``None`` for `LATENCY` and for unknown kinds."""
    kind, _, _ = segment.partition(_SEPARATOR)
    return SegmentKind(kind) if kind in set(SegmentKind) else None


class PathSegments:
    """Segments of all passages in a trace."""

    def __init__(
        self, flow: FlowGraph, paths: Sequence[PathSpec], *, thread_states: pl.DataFrame | None = None
    ) -> None:
        critical = CriticalPaths(flow)
        found = [each for each in (find_path(flow, path) for path in paths) if len(each)]
        parts = [break_down(flow, each, thread_states=thread_states, critical=critical) for each in found]
        self._paths = [(each, _by_segment(each, segments)) for each, segments in zip(found, parts, strict=True)]

    def of(self, trial: TrialSpan) -> dict[str, dict[str, int]]:
        """Medians over the passages that ended while the goal was active; paths without any are left out."""
        medians = {}
        for found, segments in self._paths:
            own = segments.filter(pl.col("passage").is_in(passages_of(found, trial).implode()))
            # A missing segment counts as 0.
            wide = own.pivot("segment", index="passage", values="duration_ns").fill_null(0).drop("passage")
            medians[found.path.name] = {
                name: round(np.median(each.to_numpy())) for name, each in wide.to_dict().items()
            }
        return {name: found for name, found in medians.items() if found}


def _by_segment(instances: PathInstances, segments: pl.DataFrame) -> pl.DataFrame:
    """Columns: `passage`, `segment`, `duration_ns`; parts of the same segment are summed within each passage."""
    segment = pl.concat_str("kind", "subject", separator=_SEPARATOR)
    parts = segments.select("passage", "duration_ns", segment=segment)
    whole = instances.table.select(
        passage=pl.int_range(pl.len(), dtype=pl.Int32), duration_ns="latency_ns", segment=pl.lit(LATENCY)
    )
    both = pl.concat([whole.select(parts.columns), parts])
    return both.group_by("passage", "segment", maintain_order=True).agg(pl.col("duration_ns").sum())


def passages_of(instances: PathInstances, trial: TrialSpan) -> pl.Series:
    """Rows of the passages that ended while the goal was active."""
    numbered = instances.table.with_columns(passage=pl.int_range(pl.len(), dtype=pl.Int32))
    if instances.path.of_phases:
        return numbered.filter(pl.col("goal_id") == trial.goal_id)["passage"]
    begin_ns, end_ns = trial.phases.get(trial.first_phase), trial.phases.get(Phase.RESULT, trial.end_ns)
    if begin_ns is None or end_ns is None:
        return pl.Series(dtype=pl.Int32)
    return numbered.filter(pl.col("end_ns").is_between(begin_ns, end_ns))["passage"]


@dataclass(frozen=True)
class Kept:
    """Passages of a path that ended during a trial; `in_time` of them kept the deadline."""

    passages: int
    in_time: int

    @property
    def share(self) -> float:
        """Fraction of passages in time; 0 without passages."""
        return self.in_time / self.passages if self.passages else 0.0


def kept_deadlines(
    trial: TrialSpan, deadlines: Sequence[DeadlineSpec], paths: Sequence[PathSpec], trace_flow: TraceFlow
) -> dict[str, Kept]:
    """Compliance with each deadline while the goal was active, by path."""
    by_name = {path.name: path for path in paths}
    kept = {}
    for deadline in deadlines:
        instances = trace_flow.find_path(by_name[deadline.path])
        latencies_ns = instances.table["latency_ns"].gather(passages_of(instances, trial))
        kept[deadline.path] = Kept(len(latencies_ns), int((latencies_ns <= deadline.ns).sum()))
    return kept


TOLERANCE_NS: Final = NS_PER_MS
TOLERANCE_FRACTION: Final = 0.01


def find_disagreement(trial: TrialSpan, stamps_ns: Mapping[str, int]) -> str | None:
    """Reason why a trial's markers and stamps disagree, with both numbers; ``None`` if they agree.

    For a trial without markers, only phases present in both are compared: no publication shows the sending of a goal.
    """
    for name, metric in METRICS.items():
        stamped, traced = metric.latency_ns(stamps_ns), metric.latency_ns(trial.phases)
        if stamped is None or (traced is None and not trial.marked):
            continue
        if traced is None:
            return f"{name} is {ns_to_ms(stamped):.2f} ms by the goal client's stamps, but not marked in the trace"
        if abs(traced - stamped) > TOLERANCE_NS + TOLERANCE_FRACTION * stamped:
            return (
                f"{name} is {ns_to_ms(traced):.2f} ms by the trace but "
                f"{ns_to_ms(stamped):.2f} ms by the goal client's stamps"
            )
    return None


PLANNING_DELAY: Final = "planning feedback"
EXECUTING_DELAY: Final = "executing feedback"
_DELAYS: Final = {Phase.PLANNING: PLANNING_DELAY, Phase.EXECUTING: EXECUTING_DELAY}


def extract_reception(trial: TrialSpan, model: ExecutionModel, *, action: str) -> dict[str, int]:
    """Delay of the feedback of the goals' action that began each phase, nanoseconds, by segment name.

    A phase's feedback is the last one published before the client received it and after the goal was sent.
    """
    published = model.publication_times_ns(action + FEEDBACK)
    sent_ns = trial.phases.get(Phase.GOAL_SENT)
    if sent_ns is None:
        return {}
    delays = {}
    for phase, name in _DELAYS.items():
        received_ns = trial.phases.get(phase)
        before = -1 if received_ns is None else int(np.searchsorted(published, received_ns)) - 1
        if received_ns is not None and before >= 0 and published[before] >= sent_ns:
            delays[name] = received_ns - int(published[before])
    return delays


@dataclass(frozen=True)
class TrialMetrics:
    """Measurements of one trial.

    Attributes:
        measurements: by metric name.
        reception_ns: delay of the feedback that began each phase, by name.
        cpu_work_ns: see `TrialSpan`.
        trial: the measured trial; ``None`` if it is not in the trace.
    """

    measurements: Mapping[str, Measurement]
    reception_ns: Mapping[str, int]
    cpu_work_ns: int | None = None
    trial: TrialSpan | None = None


def find_goals(model: ExecutionModel, *, interfaces: Interfaces = USUAL) -> Mapping[str, TrialSpan]:
    """Goals of a trace, by id: the marked trials, or all goals of the planner's action if there are no markers."""
    return model.trials or find_unmarked(model, interfaces.action)


def find_trial(
    goal_id: str,
    model: ExecutionModel,
    *,
    stamps_ns: Mapping[str, int],
    clock_offset_ns: int,
    interfaces: Interfaces = USUAL,
) -> TrialSpan | None:
    """Finds a client's goal in the trace: by its markers or, in a trace without any, by the client's stamps.

    These are of ``CLOCK_MONOTONIC``; the offset is from its zero to the epoch (`TraceInfo.clock_offset_ns`).
    """
    if model.trials or not {Phase.GOAL_SENT, Phase.RESULT} <= set(stamps_ns):
        return model.trials.get(goal_id)
    first_ns, last_ns = (stamps_ns[phase] + clock_offset_ns for phase in (Phase.GOAL_SENT, Phase.RESULT))
    within = [goal for goal in find_unmarked(model, interfaces.action).values() if first_ns <= goal.begin_ns <= last_ns]
    return within[0] if len(within) == 1 else None


def span_of_stamps(
    goal_id: str, *, scenario: str, index: int, stamps_ns: Mapping[str, int], clock_offset_ns: int
) -> TrialSpan | None:
    """The trial of a stimulus without markers, from its stamps (see `find_trial`); ``None`` without begin and end."""
    if not {Phase.GOAL_SENT, Phase.RESULT} <= set(stamps_ns):
        return None
    phases = {phase: stamps_ns[phase] + clock_offset_ns for phase in Phase if phase in stamps_ns}
    return TrialSpan(
        goal_id=goal_id,
        scenario=scenario,
        index=index,
        begin_ns=phases[Phase.GOAL_SENT],
        phases=phases,
        plan=None,
        end_ns=phases[Phase.RESULT],
        error_code=None,
        is_stamped=True,
    )


def extract_trial(
    trial: TrialSpan | None,
    model: ExecutionModel,
    *,
    stamps_ns: Mapping[str, int],
    nominal_period_ns: int,
    interfaces: Interfaces = USUAL,
    catalogue: Catalogue = METRICS,
    trace_flow: TraceFlow | None = None,
    outside: OutsideTrace = NOTHING_OUTSIDE,
) -> TrialMetrics:
    """Measures a trial of `find_goals` or `find_trial`; the goal client's `stamps_ns` check the recording.

    `trace_flow` is shared by all trials of a trace; built on first use by default.
    """
    if trial is None:
        return _distrust("the trial's markers are not in the trace", model, catalogue)
    disagreement = find_disagreement(trial, stamps_ns)
    if disagreement is not None:
        return replace(_distrust(disagreement, model, catalogue), trial=trial)
    context = TrialContext(
        trial=trial,
        model=model,
        nominal_period_ns=nominal_period_ns,
        trace_flow=trace_flow or TraceFlow(lambda: build_flow(model)),
        interfaces=interfaces,
        outside=outside,
    )
    return TrialMetrics(
        measurements={name: metric.take(context) for name, metric in catalogue.items()},
        reception_ns=extract_reception(trial, model, action=interfaces.action),
        cpu_work_ns=trial.cpu_work_ns,
        trial=trial,
    )


def extract_metrics(
    model: ExecutionModel,
    *,
    nominal_period_ns: int,
    interfaces: Interfaces = USUAL,
    own: Iterable[OwnMetric] = (),
    declared: Iterable[MetricSpec] = (),
    flow: FlowGraph | None = None,
    events: OwnEvents | None = None,
) -> dict[str, TrialMetrics]:
    """Measures every goal of a trace (`find_goals`) from the trace alone, by goal id.

    Each metric uses and names the best source in the trace: markers and probes, or else ROS 2's own events.

    Args:
        own: user-defined metrics, measured in addition to the built-in ones.
        declared: metrics of paths, topics and own tracepoints; those of processes are left out, because a trace does
            not contain them.
        flow: message flow for them; built on first use by default.
        events: events of own tracepoints, for metrics of these.

    Raises:
        ConfigurationError: an own metric has a name that is taken.
    """
    catalogue = catalogue_of(own, in_traces(declared))
    trace_flow = TraceFlow(lambda: flow or build_flow(model), events)
    return {
        goal_id: extract_trial(
            trial,
            model,
            stamps_ns={},
            nominal_period_ns=nominal_period_ns,
            interfaces=interfaces,
            catalogue=catalogue,
            trace_flow=trace_flow,
        )
        for goal_id, trial in find_goals(model, interfaces=interfaces).items()
    }


def _distrust(reason: str, model: ExecutionModel, catalogue: Catalogue) -> TrialMetrics:
    """Makes all metrics invalid, with the losses of the trace if there are any."""
    losses = describe_losses(model.stats.losses)
    invalid = Invalid(f"{reason} ({losses} in this trace)" if losses else reason)
    return TrialMetrics(dict.fromkeys(catalogue, Measurement(invalid)), {})
