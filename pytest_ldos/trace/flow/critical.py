"""Critical path of a passage: segments that sum to its latency exactly.

Between a publication and its reception, the executor's waits show when the message arrived. Between a callback and a
publication of another callback, the search follows back the other callback's trigger: its timer, or its last message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.ros2 import Phase
from pytest_ldos.trace.execution.columns import NEVER, chunks, computed, filled, ids_of, pick, rows_of, times_of
from pytest_ldos.trace.execution.goals import FEEDBACK
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.execution.scheduling import split_spans, threads_of_hosts
from pytest_ldos.trace.flow.arrivals import Arrivals, timer_due_ns
from pytest_ldos.trace.flow.graph import FlowGraph, Names, Runs, publication_begins
from pytest_ldos.trace.flow.lineage import PathInstances
from pytest_ldos.trace.flow.transport import first_linked, sent_ns


class SegmentKind(StrEnum):
    PUBLISH = "publish call"
    TRANSPORT = "transport"
    EXECUTOR_WAIT = "executor wait"
    CALLBACK = "callback run"
    TIMER_WAIT = "timer wait"
    CPU_WAIT = "CPU wait"
    MOTION = "planned motion"
    OUTSIDE = "outside callbacks"
    PLANNING_STAGE = "planning stage"


@dataclass(frozen=True)
class Segment:
    """Part of a passage, which begins where the previous one ends (nanoseconds since the epoch)."""

    kind: SegmentKind
    subject: str  # topic, reception or callback that the segment belongs to
    begin_ns: int
    end_ns: int
    # id in the model of the thread on which the time was spent (of a transport, the receiver's); -1 for none
    thread: int = -1

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


class CriticalPaths:
    def __init__(self, flow: FlowGraph) -> None:
        model = flow.model
        self._names = Names(model)
        self._published_ns = times_of(model.publications, "time_ns")
        self._called_ns = publication_begins(model)
        self._taken_ns = times_of(model.takes, "time_ns")
        self._start_ns, self._end_ns = (times_of(model.callback_runs, name) for name in ("start_ns", "end_ns"))
        self._run_thread = ids_of(model.callback_runs, "thread")
        self._take_thread = ids_of(model.takes, "thread")
        self._publication_thread = ids_of(model.publications, "thread")
        timer, callback = ids_of(model.callbacks, "timer"), ids_of(model.callback_runs, "callback")
        self._is_timer = computed(len(callback), np.bool_, lambda part: pick(timer, callback[part], -1) >= 0)
        self._runs = Runs(model)
        self._due_ns = timer_due_ns(model, self._runs)
        self._run_of_take = first_linked(len(self._taken_ns), flow.triggers, "take", "callback_run")
        waited = flow.triggers.filter(~pl.col("polled"))
        self._take_of_run = first_linked(len(self._start_ns), waited, "callback_run", "take")
        self._run_of_publication = first_linked(len(self._published_ns), flow.causes, "publication", "callback_run")
        self._origin = first_linked(len(self._taken_ns), flow.transport, "take", "publication")
        self._sent_ns = filled(len(self._taken_ns), np.int64, NEVER)
        for part in chunks(len(flow.transport)):
            links = rows_of(flow.transport, part)
            take, publication = ids_of(links, "take"), ids_of(links, "publication")
            self._sent_ns[take] = sent_ns(model, publication, take)
        self._arrivals = Arrivals(flow)
        topics = model.subscriptions.select("topic", subscription="id")
        taken = model.takes.join(topics, on="subscription", maintain_order="left")
        self._feedback = taken.filter(pl.col("topic").str.ends_with(FEEDBACK)).select("id", "thread", "time_ns")

    def segments(self, takes: Iterable[int], to_publication: int) -> list[Segment]:
        """Segments of a passage through the given receptions, in order, to a publication."""
        received = list(takes)
        publications = [int(self._origin[take]) for take in received] + [to_publication]
        found: list[Segment] = []
        for take, publication in zip(received, publications[1:], strict=True):
            found += self._deliver(take)
            found += self._react(take, publication)
        found.append(self._publish(to_publication, int(self._published_ns[to_publication])))
        return [each for each in found if each.begin_ns != each.end_ns]

    def _publish(self, publication: int, until_ns: int) -> Segment:
        return Segment(SegmentKind.PUBLISH, self._names.topic(publication), int(self._called_ns[publication]), until_ns)

    def _deliver(self, take: int) -> Iterator[Segment]:
        """Segments from the publish call of a message until its callback starts with it."""
        sent, taken = int(self._sent_ns[take]), int(self._taken_ns[take])
        arrived = self._arrivals.of(take, sent, taken)
        used, thread = self._moment_of_use(take), int(self._take_thread[take])
        yield self._publish(int(self._origin[take]), sent)
        yield Segment(SegmentKind.TRANSPORT, self._names.reception(take), sent, arrived, thread)
        yield Segment(SegmentKind.EXECUTOR_WAIT, self._names.receiver(take), arrived, used, thread)

    def _moment_of_use(self, take: int) -> int:
        """Start of the message's callback; the time of the take if a callback polled it or none ran."""
        run = int(self._run_of_take[take])
        return int(self._taken_ns[take]) if run < 0 else max(int(self._start_ns[run]), int(self._taken_ns[take]))

    def _react(self, take: int, publication: int) -> Iterator[Segment]:
        """Segments from the start of a message's callback to the publish call of its result."""
        begin, call = self._moment_of_use(take), int(self._called_ns[publication])
        received, published = int(self._run_of_take[take]), int(self._run_of_publication[publication])
        if published < 0 or received == published:
            kind = SegmentKind.OUTSIDE if published < 0 else SegmentKind.CALLBACK
            yield self._in_run(kind, received, begin, call)
            return
        start = max(int(self._start_ns[published]), begin)
        stored = min(max(int(self._end_ns[received]), begin), start) if received >= 0 else begin
        yield self._in_run(SegmentKind.CALLBACK, received, begin, stored)
        yield from self._follow(self._waited_for(published), stored, int(self._start_ns[published]))
        yield self._in_run(SegmentKind.CALLBACK, published, start, call)

    def _in_run(self, kind: SegmentKind, run: int, begin_ns: int, end_ns: int) -> Segment:
        thread = int(self._run_thread[run]) if run >= 0 else -1
        return Segment(kind, self._names.run(run) if run >= 0 else "", begin_ns, end_ns, thread)

    def _follow(self, leg: _Leg, since_ns: int, until_ns: int) -> list[Segment]:
        """Follows legs back to `since_ns`; time without any explaining event remains as one segment."""
        found: list[Segment] = []
        followed: set[int] = set()
        while True:
            parts = []
            for each in leg.segments:
                begin_ns, end_ns = (min(max(moment, since_ns), until_ns) for moment in (each.begin_ns, each.end_ns))
                parts.append(replace(each, begin_ns=begin_ns, end_ns=end_ns))
            found = [*parts, *found]
            until_ns = min(until_ns, max(leg.begin_ns, since_ns))
            if since_ns >= until_ns:
                return found
            if leg.run < 0 or leg.run in followed:
                return [Segment(SegmentKind.OUTSIDE, leg.before, since_ns, until_ns, leg.thread), *found]
            followed.add(leg.run)
            leg = self._waited_for(leg.run)

    def _waited_for(self, run: int) -> _Leg:
        start, thread = int(self._start_ns[run]), int(self._run_thread[run])
        if self._is_timer[run]:
            due = int(self._due_ns[run]) if self._due_ns[run] != NEVER else start
            timer = Segment(SegmentKind.TIMER_WAIT, self._names.run(run), int(NEVER), due)
            return _Leg([timer, self._in_run(SegmentKind.EXECUTOR_WAIT, run, due, start)], int(NEVER))
        take = int(self._take_of_run[run])
        if take < 0:
            return _Leg([Segment(SegmentKind.OUTSIDE, self._names.run(run), int(NEVER), start, thread)], int(NEVER))
        return self._arrival(take)

    def _arrival(self, take: int) -> _Leg:
        """Transport of a message, from the start of the sending callback if there is one."""
        publication = int(self._origin[take])
        if publication < 0:
            taken, thread = int(self._taken_ns[take]), int(self._take_thread[take])
            node, used = self._names.receiver(take), self._moment_of_use(take)
            waited = Segment(SegmentKind.EXECUTOR_WAIT, node, taken, used, thread)
            return _Leg([waited], taken, before=self._names.reception(take))
        sender = int(self._run_of_publication[publication])
        call = int(self._called_ns[publication])
        part = list(self._deliver(take))
        if sender < 0:
            thread = int(self._publication_thread[publication])
            return _Leg(part, call, before=self._names.sender(publication), thread=thread)
        begin = int(self._start_ns[sender])
        return _Leg([self._in_run(SegmentKind.CALLBACK, sender, begin, call), *part], begin, run=sender)

    def back_from(self, thread: int, until_ns: int, since_ns: int, *, by_feedback: bool) -> list[Segment]:
        """Segments on a thread from `since_ns` to `until_ns`; they sum to the difference exactly.

        If no callback runs, `by_feedback` follows the last action feedback that the thread took.
        """
        run = int(self._runs.at(np.array([thread]), np.array([until_ns]))[0])
        if run >= 0:
            within = self._in_run(SegmentKind.CALLBACK, run, int(self._start_ns[run]), until_ns)
            return self._follow(_Leg([within], within.begin_ns, run=run), since_ns, until_ns)
        taken = self._feedback.filter((pl.col("thread") == thread) & (pl.col("time_ns") <= until_ns))["id"]
        take = int(taken[-1]) if by_feedback and len(taken) else -1
        if take < 0 or self._taken_ns[take] < since_ns:
            return [Segment(SegmentKind.OUTSIDE, "", since_ns, until_ns, thread)]
        taken_ns, subject = int(self._taken_ns[take]), f"{self._names.receiver(take)} after feedback"
        handling = Segment(SegmentKind.OUTSIDE, subject, taken_ns, until_ns, thread)
        return [*self._follow(self._arrival(take), since_ns, taken_ns), handling]


@dataclass(frozen=True)
class _Leg:
    """Step of the backward search: contiguous segments, and what was before them."""

    segments: Sequence[Segment]
    begin_ns: int
    run: int = -1  # callback run in which they begin; -1 for none
    # before, thread: subject and thread of the time before, if there is no run; -1 for an unknown thread
    before: str = ""
    thread: int = -1


def split_by_stages(model: ExecutionModel, segment: Segment) -> list[Segment]:
    """Splits a segment at the ends of the planning stages on its thread; a service plans on its server's."""
    is_inside = pl.col("time_ns").is_between(segment.begin_ns, segment.end_ns, closed="right")
    inside = model.planning_stages.filter(is_inside)
    is_services = segment.subject.startswith("from ") and inside["thread"].n_unique() == 1  # no message led to it
    ended = inside if is_services else inside.filter(pl.col("thread") == segment.thread)
    parts: list[Segment] = []
    begin_ns = segment.begin_ns
    for end_ns, name, thread in ended.select("time_ns", "name", "thread").iter_rows():
        subject = name if parts else f"up to {name}"  # no event reports the begin of planning
        parts.append(Segment(SegmentKind.PLANNING_STAGE, subject, begin_ns, end_ns, thread))
        begin_ns = end_ns
    return [*parts, replace(segment, begin_ns=begin_ns)]


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
        thread_states: result of `build_thread_states`; used to separate waiting for a CPU.
        critical: critical paths of the same graph, reused when several paths are broken down.

    Columns: `passage` (row in `instances.table`), `position`, `kind`, `subject`, `begin_ns`, `end_ns`,
    `duration_ns`, `thread`. Durations of a passage sum to its `latency_ns` exactly.
    """
    critical = critical or CriticalPaths(flow)
    if instances.path.of_phases:
        segments = _frame(_phase_segments(flow, instances, critical))
    else:
        passages = instances.table.select("takes", "to_publication").iter_rows()
        segments = _frame((row, critical.segments(*passage)) for row, passage in enumerate(passages))
    return segments if thread_states is None else _split_cpu_waits(flow.model, segments, thread_states)


def _phase_segments(
    flow: FlowGraph, instances: PathInstances, critical: CriticalPaths
) -> Iterator[tuple[int, list[Segment]]]:
    """Segments of each phase, followed back as far as events explain; planning is split by stages."""
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
    """Names unexplained time after its phases; splits the planned motion off the execution."""
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
    names = {"kind": pl.String, "subject": pl.String}
    times = dict.fromkeys(("begin_ns", "end_ns", "duration_ns"), pl.Int64)
    schema = {"passage": pl.Int32, "position": pl.Int32, **names, **times, "thread": pl.Int32}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _split_cpu_waits(model: ExecutionModel, segments: pl.DataFrame, thread_states: pl.DataFrame) -> pl.DataFrame:
    """Adds a *CPU wait* after each segment with the part of its time in which its thread was runnable.

    Both keep the begin and end of the whole segment; their durations sum to its duration. The thread of a transport
    segment is the receiver's: from its wakeup until it runs, it waits for a CPU.
    """
    placed = segments.join(threads_of_hosts(model), on="thread", how="left", maintain_order="left")
    spans = placed.filter(pl.col("tid").is_not_null() & (pl.col("end_ns") >= pl.col("begin_ns")))
    runnable = split_spans(thread_states, spans.select("host", "tid", "begin_ns", "end_ns"))["runnable_ns"]
    waited = spans.select("passage", "position").with_columns(runnable=runnable)
    whole = segments.join(waited, on=["passage", "position"], how="left").with_columns(pl.col("runnable").fill_null(0))
    rest = whole.with_columns(duration_ns=pl.col("duration_ns") - pl.col("runnable"))
    waits = whole.with_columns(kind=pl.lit(SegmentKind.CPU_WAIT.value), duration_ns="runnable")
    both = pl.concat([rest, waits]).filter(pl.col("duration_ns") != 0).drop("runnable")
    ordered = both.sort("passage", "position", maintain_order=True)
    return ordered.with_columns(position=pl.int_range(pl.len(), dtype=pl.Int32).over("passage"))
