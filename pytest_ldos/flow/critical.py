"""Where the time of a passage went: segments that sum to its latency exactly.

From a publication to its reception, what happened on the receiving executor decides: while it
was busy the message waited for it; while it waited for work the message was on its way. From
a callback to a publication that another callback made, what that callback waited for decides:
its timer, or the last of its messages, whose own way is then followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.execution.columns import NEVER, IdArray, TimesNs, ids_of, pick, times_of
from pytest_ldos.execution.model import ExecutionModel
from pytest_ldos.flow.causal import publication_begins
from pytest_ldos.flow.graph import FlowGraph
from pytest_ldos.flow.names import Names
from pytest_ldos.flow.paths import PathInstances
from pytest_ldos.flow.timers import timer_due_ns


class SegmentKind(StrEnum):
    """What a stretch of time was spent on."""

    PUBLISH = "publish call"
    TRANSPORT = "transport"
    EXECUTOR_WAIT = "executor wait"
    CALLBACK = "callback run"
    TIMER_WAIT = "timer wait"
    CPU_WAIT = "CPU wait"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Segment:
    """A stretch of a passage.

    Attributes:
        subject: what it belongs to: a topic, a reception, a callback.
        begin_ns, end_ns: nanoseconds since the epoch; the end of one is the beginning of the next.
        thread: of the model, on which it was spent; -1 where it was on none.
    """

    kind: SegmentKind
    subject: str
    begin_ns: int
    end_ns: int
    thread: int = -1

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


class CriticalPaths:
    """Breaks passages of a flow graph into segments."""

    def __init__(self, flow: FlowGraph) -> None:
        model = flow.model
        self._names = Names(model)
        self._published_ns = times_of(model.publications, "time_ns")
        self._called_ns = publication_begins(model)
        self._taken_ns = times_of(model.takes, "time_ns")
        self._start_ns, self._end_ns = (times_of(model.callback_runs, name) for name in ("start_ns", "end_ns"))
        self._run_thread = ids_of(model.callback_runs, "thread")
        self._take_thread = ids_of(model.takes, "thread")
        self._is_timer = pick(ids_of(model.callbacks, "timer"), ids_of(model.callback_runs, "callback"), -1) >= 0
        self._due_ns = timer_due_ns(model)
        self._run_of_take = _inverse(len(self._taken_ns), flow.triggers, "take", "callback_run")
        waited = flow.triggers.filter(~pl.col("polled"))
        self._take_of_run = _inverse(len(self._start_ns), waited, "callback_run", "take")
        self._run_of_publication = _inverse(len(self._published_ns), flow.causes, "publication", "callback_run")
        self._origin = _inverse(len(self._taken_ns), flow.transport, "take", "publication")
        self._waits = _ExecutorWaits(flow)

    def segments(self, takes: Iterable[int], to_publication: int) -> list[Segment]:
        """Segments of a passage through some receptions, in order, to a publication."""
        received = list(takes)
        publications = [int(self._origin[take]) for take in received] + [to_publication]
        found = list(self._publish(publications[0]))
        for take, publication in zip(received, publications[1:], strict=True):
            found += self._deliver(take)
            found += self._react(take, publication)
            found += self._publish(publication)
        return [each for each in found if each.begin_ns != each.end_ns]

    def _publish(self, publication: int) -> Iterator[Segment]:
        begin, end = int(self._called_ns[publication]), int(self._published_ns[publication])
        yield Segment(SegmentKind.PUBLISH, self._names.topic(publication), begin, end)

    def _deliver(self, take: int) -> Iterator[Segment]:
        """From the publication of a message to the moment its callback starts with it."""
        sent, taken = int(self._published_ns[self._origin[take]]), int(self._taken_ns[take])
        thread = int(self._take_thread[take])
        ready, arrived = self._waits.around(thread, sent, taken)
        way, node = self._names.reception(take), self._names.receiver(take)
        yield Segment(SegmentKind.EXECUTOR_WAIT, node, sent, ready, thread)
        yield Segment(SegmentKind.TRANSPORT, way, ready, arrived)
        yield Segment(SegmentKind.EXECUTOR_WAIT, node, arrived, self._moment_of_use(take), thread)

    def _moment_of_use(self, take: int) -> int:
        """When the callback starts; the reception itself where a callback polled or none ran."""
        run = int(self._run_of_take[take])
        return int(self._taken_ns[take]) if run < 0 else max(int(self._start_ns[run]), int(self._taken_ns[take]))

    def _react(self, take: int, publication: int) -> Iterator[Segment]:
        """From the start of a message's callback to the publish call of what was made from it."""
        begin, call = self._moment_of_use(take), int(self._called_ns[publication])
        received, published = int(self._run_of_take[take]), int(self._run_of_publication[publication])
        if published < 0 or received == published:
            kind = SegmentKind.UNKNOWN if published < 0 else SegmentKind.CALLBACK
            yield self._in_run(kind, received, begin, call)
            return
        start = max(int(self._start_ns[published]), begin)
        stored = min(max(int(self._end_ns[received]), begin), start) if received >= 0 else begin
        yield self._in_run(SegmentKind.CALLBACK, received, begin, stored)
        yield from self._resolve(published, stored)
        yield self._in_run(SegmentKind.CALLBACK, published, start, call)

    def _in_run(self, kind: SegmentKind, run: int, begin_ns: int, end_ns: int) -> Segment:
        thread = int(self._run_thread[run]) if run >= 0 else -1
        return Segment(kind, self._names.run(run) if run >= 0 else "", begin_ns, end_ns, thread)

    def _resolve(self, run: int, since_ns: int) -> list[Segment]:
        """What a callback waited for between `since_ns` and its start: its timer or its message."""
        found: list[Segment] = []
        until = int(self._start_ns[run])
        followed: set[int] = set()
        while since_ns < until and run >= 0 and run not in followed:
            followed.add(run)
            part, run, begin = self._waited_for(run)
            found = [*_clipped(part, since_ns, until), *found]
            until = max(min(begin, until), since_ns)
        return [Segment(SegmentKind.UNKNOWN, "", since_ns, max(until, since_ns)), *found]

    def _waited_for(self, run: int) -> tuple[list[Segment], int, int]:
        """Segments that end with the start of a run, the run they began in (-1: none), and its moment."""
        start, thread = int(self._start_ns[run]), int(self._run_thread[run])
        if self._is_timer[run]:
            due = int(self._due_ns[run]) if self._due_ns[run] != NEVER else start
            timer = Segment(SegmentKind.TIMER_WAIT, self._names.run(run), int(NEVER), due)
            return [timer, self._in_run(SegmentKind.EXECUTOR_WAIT, run, due, start)], -1, int(NEVER)
        take = int(self._take_of_run[run])
        publication = int(self._origin[take]) if take >= 0 else -1
        if publication < 0:
            return [Segment(SegmentKind.UNKNOWN, self._names.run(run), int(NEVER), start, thread)], -1, int(NEVER)
        sender = int(self._run_of_publication[publication])
        call = int(self._called_ns[publication])
        part = [*self._publish(publication), *self._deliver(take)]
        if sender < 0:
            return part, -1, call
        begin = int(self._start_ns[sender])
        return [self._in_run(SegmentKind.CALLBACK, sender, begin, call), *part], sender, begin


def _clipped(segments: Iterable[Segment], since_ns: int, until_ns: int) -> Iterator[Segment]:
    """What lies within a span of segments that follow each other; so do the parts."""
    for each in segments:
        begin, end = (min(max(moment, since_ns), until_ns) for moment in (each.begin_ns, each.end_ns))
        yield Segment(each.kind, each.subject, begin, end, each.thread)


def _inverse(size: int, links: pl.DataFrame, key: str, value: str) -> IdArray:
    """The first `value` linked with each `key`, -1 where there is none; shape ``(size,)``."""
    found = np.full(size, -1, dtype=np.int32)
    found[ids_of(links, key)[::-1]] = ids_of(links, value)[::-1]
    return found


class _ExecutorWaits:
    """When the threads of each executor waited for work, and when a thread that is alone was busy."""

    def __init__(self, flow: FlowGraph) -> None:
        model = flow.model
        self._executor = ids_of(model.threads, "executor")
        whole = model.waits.filter(pl.col("end_ns").is_not_null())
        executor = self._executor[ids_of(whole, "thread")]
        begin, end = times_of(whole, "begin_ns"), times_of(whole, "end_ns")
        self._of: dict[int, tuple[TimesNs, TimesNs]] = {}
        for number in np.unique(executor).tolist():
            rows = np.flatnonzero(executor == number)
            rows = rows[np.argsort(end[rows], kind="stable")]
            self._of[number] = (begin[rows], end[rows])
        self._busy_until = _run_ends(model)

    def around(self, thread: int, sent_ns: int, taken_ns: int) -> tuple[int, int]:
        """When the executor became ready for a message, and when the message reached it.

        Where no wait shows it, a thread that is alone in its executor became ready when its last
        callback ended. Of what is not known, they are `sent_ns` and `taken_ns`.
        """
        if taken_ns <= sent_ns:
            return sent_ns, taken_ns
        waits = self._of.get(int(self._executor[thread]))
        last = -1 if waits is None else int(np.searchsorted(waits[1], taken_ns, side="right")) - 1
        if waits is not None and last >= 0 and int(waits[1][last]) > sent_ns:
            return max(int(waits[0][last]), sent_ns), int(waits[1][last])
        ends_ns = self._busy_until.get(thread, _NEVER)
        last = int(np.searchsorted(ends_ns, taken_ns, side="right")) - 1
        return max(int(ends_ns[last]) if last >= 0 else sent_ns, sent_ns), taken_ns


_NEVER: Final = np.empty(0, dtype=np.int64)


def _run_ends(model: ExecutionModel) -> dict[int, TimesNs]:
    """When callbacks ended on each thread that is alone in its executor, in order."""
    alone = model.executors.filter(pl.col("threads") == 1)["id"]
    threads = model.threads.filter(pl.col("executor").is_in(alone.implode()))["id"]
    runs = model.callback_runs.filter(pl.col("thread").is_in(threads.implode()) & pl.col("end_ns").is_not_null())
    return {
        int(thread): np.sort(times_of(own, "end_ns"))
        for (thread,), own in runs.partition_by("thread", as_dict=True).items()
    }


def break_down(flow: FlowGraph, instances: PathInstances) -> pl.DataFrame:
    """Segments of all passages along a path.

    Columns: `passage` (row in `instances.table`), `position`, `kind`, `subject`, `begin_ns`, `end_ns`,
    `duration_ns`, `thread`. Durations of a passage sum to its `latency_ns` exactly.
    """
    if instances.path.of_phases:
        return _frame(_phase_segments(flow, instances))
    paths = CriticalPaths(flow)
    passages = instances.table.select("takes", "to_publication").iter_rows()
    return _frame((row, paths.segments(*passage)) for row, passage in enumerate(passages))


def _phase_segments(flow: FlowGraph, instances: PathInstances) -> Iterator[tuple[int, list[Segment]]]:
    """From phase to phase."""
    via = instances.path.via
    phases = flow.model.phases.select("goal_id", "phase", "time_ns")
    entered = {(goal_id, phase): time_ns for goal_id, phase, time_ns in phases.iter_rows()}
    for row, goal_id in enumerate(instances.table["goal_id"]):
        yield (
            row,
            [
                Segment(SegmentKind.CALLBACK, f"{one} → {other}", entered[goal_id, one], entered[goal_id, other])
                for one, other in pairwise(via)
            ],
        )


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
