"""Time spans with possibly missing events, and events that processes did not write.

Streams of one trace need not cover the same time: a flight recorder overwrites the rings of busy CPUs first, a snapshot
cuts each stream elsewhere, and a tracer discards events where a buffer is full. A thread may have run on any CPU.
Therefore a process is *whole* only while no stream that may hold its events lacks anything. Rates, losses,
lateness and states of threads are computed only then. A *stretch* is the time between two spans with missing events.

An event is missing because it was not recorded (a list of events), because the middleware has no tracepoints, or
because tracetools is older than the tracepoint. What the buffers lost is counted elsewhere (`ctf.stats`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.ros2 import Caret, Ros2
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.ctf.stats import FIRST_NS, LAST_NS, ReadStats
from pytest_ldos.trace.execution.columns import IdArray, TimesNs, distinct_where
from pytest_ldos.trace.execution.model import INSTANCES, ExecutionModel, MissingEvent
from pytest_ldos.trace.execution.threads import ThreadCensus, Vocabulary

Span = tuple[int, int]  # half-open span [begin, end) in which events may be missing


def build_missing_spans(trace: DecodedTrace, census: ThreadCensus, events: Collection[str]) -> pl.DataFrame:
    """The table `missing_spans`; channels without any of the given events, which the model needs, are ignored."""
    rows: list[tuple[int, int | None, int | None]] = []
    for number, traces in enumerate(census.traces_of_processes()):
        uuids = {trace.traces[each].uuid for each in traces} - {""}  # chunks of one trace share theirs
        spans: list[Span] = []
        for stream in trace.stats.streams:
            info = trace.traces[stream.trace]
            declared = info.channels.get(stream.channel)
            is_own = stream.trace in traces or info.uuid in uuids
            if is_own and (declared is None or not declared.isdisjoint(events)):
                spans.extend((loss.from_ns, loss.to_ns) for loss in stream.losses)
        for begin, end in _disjoint(spans):
            rows.append((number, None if begin == FIRST_NS else begin, None if end == LAST_NS else end))
    return pl.DataFrame(rows, schema=dict(INSTANCES["missing_spans"]), orient="row")


def losses_of_hosts(stats: ReadStats, vocabulary: Vocabulary) -> list[list[Span]]:
    """Disjoint spans with lost kernel events, in order, by the host's code."""
    spans: list[list[Span]] = [[] for _ in vocabulary.hosts]
    for stream in stats.streams:
        host = vocabulary.of_trace[stream.trace]
        if host >= 0:
            spans[host].extend((loss.from_ns, loss.to_ns) for loss in stream.losses)
    return [_disjoint(each) for each in spans]


def _disjoint(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


class Coverage:
    """Times at which processes are whole, from the table `missing_spans`; `processes` have any."""

    def __init__(self, missing: pl.DataFrame) -> None:
        filled = missing.with_columns(pl.col("begin_ns").fill_null(FIRST_NS), pl.col("end_ns").fill_null(LAST_NS))
        self._spans: dict[int, list[Span]] = {}
        for process, begin, end in filled.select("process", "begin_ns", "end_ns").iter_rows():
            self._spans.setdefault(process, []).append((begin, end))
        self.processes = sorted(self._spans)

    def __bool__(self) -> bool:
        """True if events of any process may be missing."""
        return bool(self._spans)

    def spans(self, processes: Iterable[int]) -> list[Span]:
        """Disjoint spans, in order, in which at least one of these processes is not whole."""
        return _disjoint(span for process in set(processes) for span in self._spans.get(process, ()))

    def stretches(self, processes: Iterable[int], times_ns: TimesNs) -> IdArray:
        """For each time, the stretch in which all of these processes are whole; -1 if one is not."""
        return _stretches(self.spans(processes), times_ns)

    def stretches_of_each(self, process: IdArray, times_ns: TimesNs) -> IdArray:
        """For each time, the stretch of its own process; -1 if it is not whole."""
        found = np.zeros(len(times_ns), dtype=np.int32)
        for number in self.processes:
            own = process == number
            found[own] = _stretches(self._spans[number], times_ns[own])
        return found

    def are_whole(self, process: IdArray, begin_ns: TimesNs, end_ns: TimesNs) -> npt.NDArray[np.bool_]:
        """True for each span during which its process is whole."""
        first, last = (self.stretches_of_each(process, times_ns) for times_ns in (begin_ns, end_ns))
        whole: npt.NDArray[np.bool_] = (first >= 0) & (first == last)
        return whole

    def whole_spans(self, process: int, first_ns: int, last_ns: int) -> list[Span]:
        missing = [(first_ns, first_ns), *self._spans.get(process, ()), (last_ns, last_ns)]
        between = ((max(one[1], first_ns), min(other[0], last_ns)) for one, other in pairwise(missing))
        return [(begin, end) for begin, end in between if begin < end]

    def known_parts(self, process: IdArray, begin_ns: TimesNs, end_ns: TimesNs) -> tuple[IdArray, TimesNs, TimesNs]:
        """Parts of states of processes that are known: row, begin and end of each.

        A state is known next to its recorded begin and end, as long as the process is whole. A part between two
        spans with missing events that holds neither begin nor end is unknown.
        """
        rows = np.arange(len(process))
        partial = np.isin(process, self.processes)
        found = [(rows[~partial], begin_ns[~partial], end_ns[~partial])]
        for number in self.processes:
            own = rows[process == number]
            missing, begins_ns, ends_ns = self._spans[number], begin_ns[own], end_ns[own]
            missing_begin_ns, missing_end_ns = _columns([*missing, (LAST_NS, LAST_NS)])
            first, last = _stretches(missing, begins_ns), _stretches(missing, ends_ns)
            within = (first >= 0) & (first == last)
            found.append((own[within], begins_ns[within], ends_ns[within]))
            has_begin, has_end = (first >= 0) & ~within, (last >= 0) & ~within
            found.append((own[has_begin], begins_ns[has_begin], missing_begin_ns[first[has_begin]]))
            found.append((own[has_end], missing_end_ns[last[has_end] - 1], ends_ns[has_end]))
        row, begin, end = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.argsort(row, kind="stable")
        return row[order], begin[order], end[order]


def _columns(spans: list[Span]) -> tuple[TimesNs, TimesNs]:
    begin_ns, end_ns = (np.array(each, dtype=np.int64) for each in zip(*spans, strict=True))
    return begin_ns, end_ns


def _stretches(spans: list[Span], times_ns: TimesNs) -> IdArray:
    if not spans:
        return np.zeros(len(times_ns), dtype=np.int32)
    begin_ns, end_ns = _columns(spans)
    number = np.searchsorted(begin_ns, times_ns, side="right").astype(np.int32)
    is_missing = (number > 0) & (times_ns < end_ns[np.maximum(number - 1, 0)])
    return np.where(is_missing, np.int32(-1), number)


Writers = Mapping[str, frozenset[int]]  # processes that wrote each event, by name; includes declared events
_Missing = tuple[str, frozenset[int], str, tuple[str, ...]]  # event, processes that lack it, effect, and hidden tables


class _Rule(NamedTuple):
    """An event that processes should have written, too, if they wrote one of others.

    A process may legitimately write none that is optional; it is missing if the trace does not declare it.
    """

    event: str
    along_with: tuple[str, ...]
    effect: str
    hides: tuple[str, ...] = ()
    is_optional: bool = True
    instead: tuple[str, ...] = ()  # others that say the same


PUBLISHED: Final = (Ros2.RMW_PUBLISH, Ros2.RCL_PUBLISH, Ros2.RCLCPP_PUBLISH)
TAKEN: Final = (Ros2.RMW_TAKE, Ros2.RCL_TAKE, Ros2.RCLCPP_TAKE)
_NOT_LINKED: Final = "latencies, late and lost messages are not known"

_RULES: Final = (
    _Rule(Ros2.NODE_INIT, (Ros2.PUBLISHER_INIT, Ros2.SUBSCRIPTION_INIT), "nodes have no names"),
    _Rule(Ros2.PUBLISHER_INIT, PUBLISHED, "publishing nodes are not known"),
    _Rule(Ros2.SUBSCRIPTION_INIT, TAKEN, "receiving nodes are not known"),
    _Rule(Ros2.CALLBACK_REGISTER, (Ros2.CALLBACK_START,), "callbacks have no names"),
    _Rule(
        Ros2.CALLBACK_START,
        (Ros2.CALLBACK_REGISTER, Ros2.CALLBACK_END, Ros2.RCLCPP_TAKE),
        "which callbacks ran is not known",
        ("callback_runs",),
    ),
    _Rule(Ros2.CALLBACK_END, (Ros2.CALLBACK_START,), "how long callbacks ran is not known"),
    _Rule(Ros2.EXECUTOR_EXECUTE, (Ros2.CALLBACK_START,), "when executors worked is not known"),
    _Rule(Ros2.EXECUTOR_WAIT_FOR_WORK, (Ros2.CALLBACK_START,), "when executors waited is not known"),
    _Rule(
        Ros2.LIFECYCLE_TRANSITION,
        (Ros2.STATE_MACHINE_INIT,),
        "changes of lifecycle states are not known",
        ("transitions",),
    ),
    _Rule(Ros2.RMW_PUBLISH, (Ros2.RCL_PUBLISH, Ros2.RCLCPP_PUBLISH), _NOT_LINKED, (), False, (Caret.BIND,)),
)
"""Rules for missing events; those of publications and takes also need the tables."""


def find_missing_events(writers: Writers, frames: Mapping[str, pl.DataFrame]) -> tuple[MissingEvent, ...]:
    """Events that are missing in a trace, from publications, takes, callback runs and threads."""
    found: list[_Missing] = [
        (
            rule.event,
            _any_of(writers, *rule.along_with) - _any_of(writers, rule.event, *rule.instead),
            rule.effect,
            rule.hides,
        )
        for rule in _RULES
        if not (rule.is_optional and rule.event in writers)
    ]
    found += [*_of_publications(writers, frames), *_of_takes(writers, frames)]
    return tuple(
        MissingEvent(event, tuple(sorted(processes)), effect, hides)
        for event, processes, effect, hides in found
        if processes
    )


def _any_of(writers: Writers, *events: str) -> frozenset[int]:
    return frozenset().union(*(writers.get(event, ()) for event in events))


def _of_publications(writers: Writers, frames: Mapping[str, pl.DataFrame]) -> Iterator[_Missing]:
    unstamped = _processes("publications", _UNSTAMPED, frames) & _any_of(writers, Ros2.RMW_PUBLISH)
    yield f"{Ros2.RMW_PUBLISH}.timestamp", unstamped, f"written by ROS 2 Jazzy and later; {_NOT_LINKED}", ()
    unbound = _processes("publications", _UNSTAMPED, frames) - _processes("publications", _STAMPED, frames)
    yield Caret.BIND, unbound & _any_of(writers, Caret.BIND), f"none has a message's address; {_NOT_LINKED}", ()
    nameless = _any_of(writers, Ros2.RCLCPP_PUBLISH) - _any_of(writers, Ros2.RMW_PUBLISH, Ros2.RCL_PUBLISH)
    yield Ros2.RCL_PUBLISH, nameless, "publishers are not known", ("publications",)
    if not any(event in writers for event in PUBLISHED):
        silent = _any_of(writers, Ros2.PUBLISHER_INIT, Ros2.RMW_PUBLISHER_INIT)
        yield Ros2.RMW_PUBLISH, silent, "publications are not known", ("publications",)
    within = _processes("callback_runs", pl.col("intra"), frames) - _any_of(writers, Ros2.INTRA_PUBLISH)
    yield Ros2.INTRA_PUBLISH, within, "publications inside a process are not known", ("publications",)


def _of_takes(writers: Writers, frames: Mapping[str, pl.DataFrame]) -> Iterator[_Missing]:
    """Missing takes: if the middleware reports none, callbacks stand for them; without those, takes are missing."""
    seen = _processes("takes", _UNSTAMPED, frames) | _any_of(writers, Ros2.RCL_TAKE, Ros2.RCLCPP_TAKE)
    if Ros2.RMW_TAKE not in writers:
        seen |= _any_of(writers, Ros2.SUBSCRIPTION_INIT)
    unseen = seen - _any_of(writers, Ros2.RMW_TAKE, Caret.DISPATCH)
    runs = _any_of(writers, Ros2.CALLBACK_START)
    yield Ros2.RMW_TAKE, unseen & runs, "receptions are runs of callbacks, not linked with their publications", ()
    yield Ros2.RMW_TAKE, unseen - runs, "receptions are not known", ("takes",)


_STAMPED: Final = pl.col("source_ns").is_not_null()
_UNSTAMPED: Final = ~pl.col("intra") & ~_STAMPED


def _processes(table: str, wanted: pl.Expr, frames: Mapping[str, pl.DataFrame]) -> frozenset[int]:
    threads = distinct_where(frames[table], "thread", wanted)
    return frozenset(frames["threads"].filter(pl.col("id").is_in(threads))["process"])


def name_missing(model: ExecutionModel) -> str:
    """``"without ros2:rmw_publish, ros2:rmw_take"``, or ``""``."""
    names = ", ".join(dict.fromkeys(each.event for each in model.missing_events))
    return f"without {names}" if names else ""


def describe_missing(missing: MissingEvent, processes: pl.DataFrame) -> str:
    """``"no ros2:rmw_publish from talker (4711): …"``."""
    own = processes.filter(pl.col("id").is_in(missing.processes)).select("name", "pid")
    names = [f"{name or 'process'} ({pid})" for name, pid in own.iter_rows()]
    more = len(names) - _MOST_NAMED
    shown = ", ".join([*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])])
    of = "" if len(names) == len(processes) else f" from {shown}"
    return f"no {missing.event}{of}: {missing.effect}"


_MOST_NAMED: Final = 4
