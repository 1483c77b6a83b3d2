"""Table of the segments of all passages along a path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

import polars as pl

from pytest_ldos.base.tracepoints import Phase
from pytest_ldos.trace.execution.cpu_time import split_spans
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.critical import CriticalPaths, Segment, SegmentKind
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.paths import PathInstances
from pytest_ldos.trace.flow.stages import split_by_stages

_PHASES_OF_FEEDBACK: Final = frozenset({Phase.PLANNING, Phase.EXECUTING})


def break_down(
    flow: FlowGraph,
    instances: PathInstances,
    *,
    thread_states: pl.DataFrame | None = None,
    critical: CriticalPaths | None = None,
) -> pl.DataFrame:
    """Breaks all passages along a path into segments.

    Args:
        thread_states: result of `build_thread_states`; separates waiting for a CPU from the rest.
        critical: critical paths of the same graph, reused when several paths are broken down.

    Columns: `passage` (row in `instances.table`), `position`, `kind`, `subject`, `begin_ns`, `end_ns`,
    `duration_ns`, `thread`. Durations of a passage sum to its `latency_ns` exactly.
    """
    critical = critical or CriticalPaths(flow)
    between = _phase_segments(flow, instances, critical) if instances.path.of_phases else _segments(instances, critical)
    segments = _frame(between)
    return segments if thread_states is None else _split_cpu_waits(flow.model, segments, thread_states)


def _segments(instances: PathInstances, critical: CriticalPaths) -> Iterator[tuple[int, list[Segment]]]:
    passages = instances.table.select("takes", "to_publication").iter_rows()
    return ((row, critical.segments(*passage)) for row, passage in enumerate(passages))


def _phase_segments(
    flow: FlowGraph, instances: PathInstances, critical: CriticalPaths
) -> Iterator[tuple[int, list[Segment]]]:
    """Segments from phase to phase, each followed back as far as events explain it, planning by its stages."""
    phases = flow.model.phases.select("goal_id", "phase", "time_ns", "thread")
    entered = {(goal_id, phase): (time_ns, thread) for goal_id, phase, time_ns, thread in phases.iter_rows()}
    planned = dict(flow.model.trial_spans.select("goal_id", "planned_ns").iter_rows())
    for row, goal_id in enumerate(instances.table["goal_id"]):
        found: list[Segment] = []
        for one, other in pairwise(instances.path.via):
            since_ns, (until_ns, thread) = entered[goal_id, one][0], entered[goal_id, other]
            part = critical.back_from(
                -1 if thread is None else thread, until_ns, since_ns, by_feedback=other in _PHASES_OF_FEEDBACK
            )
            named = _named(part, one, other, planned.get(goal_id))
            found += [*split_by_stages(flow.model, named[0]), *named[1:]] if other == Phase.EXECUTING else named
        yield row, [each for each in found if each.duration_ns]


def _named(segments: list[Segment], one: str, other: str, planned_ns: int | None) -> list[Segment]:
    """Names unexplained time by its phases; of the execution, the planned motion is split off."""
    first = segments[0]
    if first.kind is not SegmentKind.OUTSIDE:
        return segments
    named = replace(first, subject=f"{first.subject} from {one} to {other}".strip())
    if planned_ns is None or (one, other) != (Phase.EXECUTING, Phase.RESULT):
        return [named, *segments[1:]]
    moved = min(first.begin_ns + planned_ns, first.end_ns)
    motion = Segment(SegmentKind.MOTION, "planned trajectory", first.begin_ns, moved)
    return [motion, replace(named, subject="beyond the plan", begin_ns=moved), *segments[1:]]


def _frame(passages: Iterable[tuple[int, list[Segment]]]) -> pl.DataFrame:
    rows = [
        (passage, position, each.kind.value, each.subject, each.begin_ns, each.end_ns, each.duration_ns, each.thread)
        for passage, segments in passages
        for position, each in enumerate(segments)
    ]
    schema = {
        "passage": pl.Int32,
        "position": pl.Int32,
        "kind": pl.String,
        "subject": pl.String,
        "begin_ns": pl.Int64,
        "end_ns": pl.Int64,
        "duration_ns": pl.Int64,
        "thread": pl.Int32,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _split_cpu_waits(model: ExecutionModel, segments: pl.DataFrame, thread_states: pl.DataFrame) -> pl.DataFrame:
    """Adds a *CPU wait* after each segment with the part of its time in which its thread was runnable.

    Both keep the begin and end of the whole segment; their durations sum to its duration. The thread of a
    transport segment is the receiver's: from its wakeup until it runs, it waits for a CPU.

    Args:
        thread_states: result of `build_thread_states`.
    """
    hosts = model.hosts.select(host_name="name", host="id")
    owners = model.processes.select("host", process="id").join(hosts, on="host").select("process", "host_name")
    threads = model.threads.select("process", "tid", thread="id").join(owners, on="process")
    names = threads.select("thread", "tid", host="host_name")
    placed = segments.join(names, on="thread", how="left", maintain_order="left")
    spans = placed.filter(pl.col("tid").is_not_null() & (pl.col("end_ns") >= pl.col("begin_ns")))
    runnable = split_spans(thread_states, spans.select("host", "tid", "begin_ns", "end_ns"))["runnable_ns"]
    waited = spans.select("passage", "position").with_columns(runnable=runnable)
    whole = segments.join(waited, on=["passage", "position"], how="left").with_columns(pl.col("runnable").fill_null(0))
    rest = whole.with_columns(duration_ns=pl.col("duration_ns") - pl.col("runnable"))
    waits = whole.with_columns(kind=pl.lit(SegmentKind.CPU_WAIT.value), duration_ns="runnable")
    both = pl.concat([rest, waits]).filter(pl.col("duration_ns") != 0).drop("runnable")
    ordered = both.sort("passage", "position", maintain_order=True)
    return ordered.with_columns(position=pl.int_range(pl.len(), dtype=pl.Int32).over("passage"))
