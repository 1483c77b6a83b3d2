"""Events of the observed processes with their threads, ordered by thread and time; those of the user's own tracepoints.

A program without a tracepoint provider, such as one in Python, writes text by LTTng's ``tracef``:
``my_pkg:solve cost=3.2 id=7`` is an event ``my_pkg:solve`` with two fields.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import ConfigurationError, TraceUnreadable, nearest, suggest
from pytest_ldos.base.ros2 import RECORDED, OwnEvent
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable
from pytest_ldos.trace.execution import _states
from pytest_ldos.trace.execution import columns as mapped
from pytest_ldos.trace.execution.columns import Columns, IdArray, TimesNs, chunks, computed, frame_of, index_by
from pytest_ldos.trace.execution.model import INSTANCES
from pytest_ldos.trace.execution.scheduling import split_spans
from pytest_ldos.trace.execution.threads import NO_PROCESS, Rows, ThreadCensus, ThreadIndex

Keys = npt.NDArray[np.int64]  # thread and time as one number, ordered by thread first; shape ``(n,)``

_KEY_BITS = 63
_ERA_NS = 1 << 46  # smallest gap between eras: about 20 hours


class Clock:
    """Turns (thread, time) into keys.

    Hosts with unset clocks are in separate eras. The time between two eras is left out, so that enough bits remain for
    the threads. The given times are all that it covers; those between the first and last of an era may be omitted.
    """

    def __init__(self, *times_ns: TimesNs) -> None:
        every = [times for times in times_ns if len(times)]
        first = min((int(times.min()) for times in every), default=0)
        self.last_ns = max((int(times.max()) for times in every), default=0)
        self._first_ns, self._before_ns = np.array([first], dtype=np.int64), np.zeros(1, dtype=np.int64)
        if self.last_ns - first > _ERA_NS:
            self._first_ns, self._before_ns = _eras(every)
        self._bits = max(int(self._since_first(np.array([self.last_ns]))[0]).bit_length(), 1)

    @classmethod
    def of(cls, *columns: pl.Series) -> Clock:
        """Clock of long columns of times, without their nulls."""
        parts = (mapped.rows_of(column, part) for column in columns for part in chunks(len(column)))
        return cls(*(edges(part.drop_nulls().to_numpy()) for part in parts))

    def _since_first(self, times_ns: TimesNs) -> TimesNs:
        if len(self._first_ns) == 1:
            since: TimesNs = times_ns - self._first_ns[0]
            return since
        era = np.maximum(np.searchsorted(self._first_ns, times_ns, side="right") - 1, 0)
        return times_ns - self._first_ns[era] + self._before_ns[era]

    def keys(self, thread: npt.NDArray[Any], times_ns: TimesNs) -> Keys:
        """Keys of (thread, time) pairs; the threads must not be -1. Refuses a trace that is too long."""
        self._require_room(thread)
        return (thread.astype(np.int64) << self._bits) | self._since_first(times_ns)

    def _require_room(self, thread: npt.NDArray[Any]) -> None:
        if len(thread) and int(thread.max()) >= 1 << (_KEY_BITS - self._bits):
            raise ConfigurationError(
                "the trace is too long for the number of its threads", remedy="read it in parts, with `window`"
            )

    def timeline(self, thread: npt.NDArray[Any], times_ns: TimesNs) -> Timeline:
        """Timeline of events given in time order."""
        if len(thread) <= mapped.CHUNK_ROWS:
            self._require_room(thread)
            return Timeline(*_states.order(thread, self._since_first(times_ns), bits=self._bits), self._bits)
        rows = index_by(thread, int(thread.max()) + 1).rows
        keys = computed(len(rows), np.int64, lambda part: self.keys(thread[rows[part]], times_ns[rows[part]]))
        return Timeline(keys, rows, self._bits)


def _eras(every: list[TimesNs]) -> tuple[TimesNs, TimesNs]:
    """Begin of each era, and the total length of the eras before it."""
    times_ns = np.unique(np.concatenate([edges(each[part]) for each in every for part in chunks(len(each))]))
    begin = np.concatenate(([0], np.flatnonzero(np.diff(times_ns) > _ERA_NS) + 1))
    end = np.append(begin[1:], len(times_ns)) - 1
    lengths = times_ns[end] - times_ns[begin] + 1
    return times_ns[begin], np.cumsum(lengths) - lengths


def edges(times_ns: TimesNs) -> TimesNs:
    """First and last time of each interval of `_ERA_NS`, which determine the same eras as all times."""
    if not len(times_ns):
        return times_ns
    first_ns, last_ns = times_ns.min(), times_ns.max()
    if last_ns - first_ns <= _ERA_NS:
        return np.array([first_ns, last_ns])
    ordered = np.sort(times_ns)
    stretch = ordered // _ERA_NS
    begins = np.flatnonzero(np.diff(stretch, prepend=stretch[0] - 1))
    return np.concatenate((ordered[begins], ordered[np.append(begins[1:], len(ordered)) - 1]))


@dataclass(frozen=True)
class Timeline:
    """Events of one kind: ascending keys, and the row of each event in its table; shape ``(n,)``."""

    keys: Keys
    rows: IdArray
    bits: int

    def last_for(self, others: Timeline, *, before: bool = False) -> IdArray:
        """Row that `last` returns for each event of another timeline, in the order of its table."""
        return self.last(others.keys, before=before, places=others.rows)

    def next_for(self, others: Timeline, *, after: bool = False) -> IdArray:
        return self._near(others.keys, others.rows, above=after)

    def last(self, keys: Keys, *, before: bool = False, skip: int = 0, places: IdArray | None = None) -> IdArray:
        """Row of the last event of the key's thread at its time or before; faster if the keys ascend.

        `skip` goes back further by so many; `places` are those of the keys' rows in the result, in their order if not
        given.
        """
        return self._near(keys, places, above=not before, shift=-1 - skip)

    def next(self, keys: Keys, *, after: bool = False) -> IdArray:
        """Row of the first event of the key's thread at its time or after (`after`: strictly after)."""
        return self._near(keys, None, above=after)

    def _near(self, keys: Keys, places: IdArray | None, *, above: bool, shift: int = 0) -> IdArray:
        return _states.near(self.keys, self.rows, keys, places, bits=self.bits, above=above, shift=shift)


_WRITTEN_BY: Final = "tracetools of ROS 2 Humble or later writes it"


@dataclass(frozen=True)
class Events:
    """Events of one name from the observed processes, in time order, with the thread and process of each."""

    name: str
    times_ns: TimesNs
    thread: IdArray
    process: IdArray
    _columns: dict[str, Column] = field(default_factory=dict, repr=False)
    _rows: Rows = field(default_factory=lambda: slice(None), repr=False)
    _source: Path = Path()

    def __len__(self) -> int:
        return len(self.times_ns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Numbers of a field: codes for text; one row per event for lists of one length."""
        if len(self) == 0:
            return np.empty(0, dtype=np.int64)
        return self._column(name).values[self._rows]

    def timed(self, **others: Any) -> Columns:
        """Columns of a table of the model: time and thread of each event, and the given ones."""
        return {"time_ns": self.times_ns, "thread": self.thread, **others}

    def table(self, name: str, /, **columns: Any) -> pl.DataFrame:
        """The model's table of these `columns`."""
        return frame_of(INSTANCES[name], self.timed(**columns))

    def handles(self, name: str) -> npt.NDArray[np.uint64]:
        return self[name].astype(np.uint64, copy=False)

    def texts(self, name: str) -> list[str]:
        return [] if len(self) == 0 else self._column(name).texts()[self._rows].tolist()

    def hexadecimals(self, name: str) -> list[str]:
        """Field of bytes, all of one length, as hexadecimal digits."""
        return [bytes(each).hex() for each in self[name].astype(np.uint8)] if len(self) else []

    def lists(self, name: str) -> list[list[int]]:
        column = self._column(name) if len(self) else ()
        return [column[row] for row in np.arange(len(column))[self._rows].tolist()]

    def _column(self, name: str) -> Column:
        if name not in self._columns:
            reason = f"{self.name} has no field {name!r} ({_WRITTEN_BY})"
            raise TraceUnreadable(self._source, None, reason)
        column = self._columns[name]
        missing = 0 if column.valid is None else int(np.count_nonzero(~column.valid[self._rows]))
        if missing:
            reason = f"{self.name} has no field {name!r} in {missing} of {len(self)} events ({_WRITTEN_BY})"
            raise TraceUnreadable(self._source, None, reason, remedy="observe only processes of ROS 2 Humble or later")
        return column

    def optional(self, name: str, otherwise: int) -> npt.NDArray[Any]:
        """Numbers of a field that older releases of tracetools lack; `otherwise` in events without it."""
        column = self._columns.get(name)
        if column is None or len(self) == 0:
            return np.full(len(self), otherwise)
        values = column.values[self._rows]
        return values if column.valid is None else np.where(column.valid[self._rows], values, otherwise)


def count_threads(
    census: ThreadCensus, trace: DecodedTrace, names: Iterable[str], pids: Collection[int] | None
) -> None:
    for name in names:
        table = trace.events.get(name)
        if table is not None:
            census.add(table, rows_of(table, census, pids, trace.directory))


def rows_of(table: EventTable, census: ThreadCensus, pids: Collection[int] | None, directory: Path) -> Rows:
    """Events of some processes, or all; refuses events that do not name theirs."""
    if pids is None:
        return slice(None)
    found = census.pids(table)
    if (found == NO_PROCESS).any():
        reason = f"{table.name} has no context vpid, so that processes cannot be distinguished"
        raise TraceUnreadable(directory, None, reason, remedy="record with: lttng add-context --userspace --type=vpid")
    return np.flatnonzero(np.isin(found, np.array(sorted(pids))))


class Observed:
    """Events of some processes; the census has all their threads, including those outside this window.

    Args:
        of_thread: thread of each event, by name, of some tables, if all their events are observed.
    """

    def __init__(
        self,
        trace: DecodedTrace,
        census: ThreadCensus,
        pids: Collection[int] | None,
        of_thread: Mapping[str, IdArray] | None = None,
    ) -> None:
        self.trace = trace
        self._pids = pids
        self._of_thread = of_thread or {}
        self._events: dict[str, Events] = {}
        self._timelines: dict[str, Timeline] = {}
        self.census = census
        self.threads = ThreadIndex(census)
        self._writers = self.threads.writers()
        self.clock = Clock(*(table.timestamp_ns for table in trace.events.values()))

    def events(self, name: str) -> Events:
        """Events of one name; empty where the trace has no such event."""
        if name in self._events:
            return self._events[name]
        table = self.trace.events.get(name)
        if table is None or len(table) == 0:
            none = np.empty(0, dtype=np.int32)
            self._events[name] = Events(name, np.empty(0, dtype=np.int64), none, none)
        else:
            rows = rows_of(table, self.census, self._pids, self.trace.directory)
            known = self._of_thread.get(name)
            thread = self.threads.index(table, rows) if known is None else known
            times_ns = table.timestamp_ns[rows]
            process = self.threads.process_of(thread)
            columns, source = dict(table.columns), self.trace.directory
            self._events[name] = Events(name, times_ns, thread, process, columns, rows, source)
        return self._events[name]

    def timeline(self, name: str) -> Timeline:
        if name not in self._timelines:
            events = self.events(name)
            self._timelines[name] = self.clock.timeline(events.thread, events.times_ns)
        return self._timelines[name]

    def without(self, name: str, events: Events) -> npt.NDArray[np.bool_]:
        """True for each event of a process that never wrote the named event in the whole trace."""
        is_without = np.ones(int(events.process.max(initial=-1)) + 1, dtype=bool)
        writers = [each for each in self._writers.get(name, ()) if each < len(is_without)]
        is_without[writers] = False
        return is_without[events.process]


TEXT_EVENT: Final = "lttng_ust_tracef:event"
"""Event of LTTng's ``tracef``, with its text in the field ``msg``."""

_CONTEXTS: Final = ("vpid", "vtid")
_TEXTS: Final = {"time_ns": pl.Int64, "vpid": pl.Int32, "vtid": pl.Int32, "text": pl.String, "name": pl.String}


class Spans(NamedTuple):
    """Times from one event to another, and the times of events without a partner."""

    pairs: pl.DataFrame  # columns `begin_ns`, `end_ns`, and each field that matched by its number; ordered by end
    without_end_ns: pl.Series
    without_begin_ns: pl.Series


class OwnEvents:
    """Events of the user's own tracepoints in a trace, by name; the trace must have been read with `names`.

    Fields are those of the payload, and the contexts. ``vpid`` and ``vtid`` number the processes and threads of all
    hosts and PID namespaces.

    Args:
        offsets_ns: corrections of the hosts' clocks, by host name.
        states: result of `build_thread_states`, to show what threads did in spans.

    Attributes:
        trace: the trace with these events alone.
        declared: names of all events that the trace's metadata declares.
    """

    def __init__(
        self,
        trace: DecodedTrace,
        names: Iterable[str],
        *,
        pids: Collection[int] | None = None,
        offsets_ns: Mapping[str, int] | None = None,
        states: pl.DataFrame | None = None,
    ) -> None:
        self.trace = replace(trace, events={name: trace.events[name] for name in {*names} & trace.events.keys()})
        self._census, self._pids, self._states = ThreadCensus(trace.traces), pids, states
        count_threads(self._census, self.trace, self.trace.events, None)
        self._threads = ThreadIndex(self._census)
        self._offsets_ns = np.array([(offsets_ns or {}).get(info.host, 0) for info in trace.traces], dtype=np.int64)
        self._spans: dict[tuple[OwnEvent, ...], Spans] = {}
        named = (name for info in trace.traces for names in info.channels.values() for name in names)
        self.declared = frozenset({*named, *self.trace.events} - {TEXT_EVENT})

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all events that the trace declares, and of those written as text."""
        return self.declared | frozenset(self._texts["name"].drop_nulls())

    def why_unknown(self, event: OwnEvent) -> str:
        """The reason why the trace lacks an event or a field, with the nearest name; empty if it has both."""
        name, fields = event
        if name not in self.names:
            usual = tuple(pattern.rstrip("*") for pattern in RECORDED)
            own = {each for each in self.names if not each.startswith(usual)} or {"only those of ROS 2"}
            near = nearest(name, self.names)
            return f"the trace has no event {name}: {suggest(name, {near} if near else own)}"
        table, texts = self.trace.events.get(name), self._texts.filter(pl.col("name") == name)
        known = set() if table is None else _scalars(table.columns)
        if len(texts):
            known |= self.trace.events[TEXT_EVENT].columns.keys() & {*_CONTEXTS}
            known |= {each[:-1] for each in texts["text"].str.extract_all(r"[^\s=]+=").explode().drop_nulls()}
        missing = next((each for each in fields if each not in known), "") if known else ""
        if missing in _CONTEXTS:
            return f"{name} has no context {missing}: record with lttng add-context --userspace --type={missing}"
        payload = known - {*_CONTEXTS, "procname"}
        return f"{name} has no field '{missing}': {suggest(missing, payload or known)}" if missing else ""

    def spans(self, *events: OwnEvent) -> Spans:
        """Times from one event to another of equal fields, or from an event to its next; found once."""
        if events not in self._spans:
            signed = pl.selectors.unsigned_integer().cast(pl.Int64, wrap_numerical=True)  # as in an event with int64_t
            tables = [self.table(each).with_columns(signed) for each in events]
            self._spans[events] = between_events(*tables) if len(tables) == 1 else pair_events(*tables)
        return self._spans[events]

    def states_ns(self, pairs: pl.DataFrame) -> dict[str, float]:
        """Median time that threads were in each state in pairs matched by `vtid` alone; empty if it is not known."""
        if self._states is None or self._states.is_empty():
            return {}
        located = self._threads.located(pairs["0"].to_numpy())
        parts = split_spans(self._states, located.with_columns(pairs["begin_ns", "end_ns"])).to_dict()
        return {name.removesuffix("_ns"): float(np.median(part.to_numpy())) for name, part in parts.items()}

    def placed(self, name: str, *fields: str) -> pl.DataFrame:
        """Columns: `time_ns`, the fields, and `host`, `tid` and `pid` of each event's thread; in time order."""
        named = {str(at): each for at, each in enumerate(("vtid", *fields))}
        found = self.table(OwnEvent(name, tuple(named.values()))).rename(named)
        return found.hstack(self._threads.located(found["vtid"].cast(pl.Int64).to_numpy())).drop("vtid")

    def table(self, event: OwnEvent) -> pl.DataFrame:
        """Columns: `time_ns`, and each field by its number, null in an event without it; in time order."""
        name, fields = event
        parts = [pl.DataFrame(schema={"time_ns": pl.Int64, **{str(at): pl.Null for at in range(len(fields))}})]
        if (table := self.trace.events.get(name)) is not None:
            parts.append(self._frame(table, fields))
        if len(texts := self._texts.filter(pl.col("name") == name)):
            value = (pl.col("text").str.extract(rf"\s{re.escape(each)}=(\S*)") for each in fields)
            found = (pl.col(each) if each in _CONTEXTS else text for each, text in zip(fields, value, strict=True))
            parts.append(texts.select("time_ns", **{str(at): each for at, each in enumerate(found)}))
        return pl.concat(parts, how="diagonal_relaxed").sort("time_ns", maintain_order=True)

    def _frame(self, table: EventTable, fields: Sequence[str]) -> pl.DataFrame:
        """Columns: `time_ns`, and each field that the table has by its number."""
        thread = self._threads.index(table)
        owners = zip(_CONTEXTS, (self._threads.process_of(thread), thread), strict=True)
        columns = {**table.columns, **{name: Column(name=name, values=values) for name, values in owners}}
        chosen = {str(at): columns[each] for at, each in enumerate(fields) if each in _scalars(columns)}
        numbered = replace(table, columns={at: replace(each, name=at) for at, each in chosen.items()})
        frame = numbered.frame().with_columns(
            pl.col(pl.Categorical).cast(pl.String), time_ns=table.timestamp_ns + self._offsets_ns[table.trace]
        )
        return frame.select("time_ns", *chosen)[rows_of(table, self._census, self._pids, self.trace.directory)]

    @cached_property
    def _texts(self) -> pl.DataFrame:
        """Columns: `time_ns`, `vpid`, `vtid`, `text`, and `name` of the event that it writes, null for other texts."""
        table = self.trace.events.get(TEXT_EVENT)
        if table is None or not len(table):
            return pl.DataFrame(schema=_TEXTS)
        found = self._frame(table, (*_CONTEXTS, "msg")).rename({"0": "vpid", "1": "vtid", "2": "text"})
        return found.with_columns(name=pl.col("text").str.extract(r"^([^\s:]+:[^\s:]+)(?:\s|$)"))


def _scalars(columns: Mapping[str, Column]) -> set[str]:
    """Names of the columns with one number or text per event."""
    return {name for name, each in columns.items() if each.offsets is None and each.values.ndim == 1}


def pair_events(begins: pl.DataFrame, ends: pl.DataFrame) -> Spans:
    """Pairs each end with the last begin of equal fields that is still open; see `OwnEvents.table`."""
    step, time_ns = pl.col("step"), pl.col("time_ns")
    steps = (frame.with_columns(step=pl.lit(step, pl.Int32)) for frame, step in ((begins, 1), (ends, -1)))
    events = pl.concat(steps, how="vertical_relaxed").sort("time_ns", maintain_order=True)
    fields = [name for name in events.columns if name not in ("time_ns", "step")]
    is_whole = pl.all_horizontal(pl.col(name).is_not_null() for name in fields)
    # Walking up one at a begin and down one at an end, partners are next to each other among the steps of one level.
    events = events.with_columns(level=step.cum_sum().over(fields) + (step < 0).cast(pl.Int32))
    keys = [*fields, "level"]
    found = events.with_columns(
        begin_ns=pl.when(is_whole, step < 0, step.shift(1).over(keys) > 0).then(time_ns.shift(1).over(keys)),
        end_ns=pl.when(is_whole, step > 0, step.shift(-1).over(keys) < 0).then(time_ns.shift(-1).over(keys)),
    )
    pairs = found.drop_nulls("begin_ns").select("begin_ns", *fields, end_ns="time_ns")
    alone = found.filter(pl.col("begin_ns").is_null() & pl.col("end_ns").is_null())
    return Spans(pairs, alone.filter(step > 0)["time_ns"], alone.filter(step < 0)["time_ns"])


def between_events(events: pl.DataFrame) -> Spans:
    """Times from each event to the next one of equal fields; see `OwnEvents.table`."""
    fields = [pl.col(name) for name in events.columns if name != "time_ns"] or [pl.lit(0)]
    pairs = events.rename({"time_ns": "end_ns"}).with_columns(begin_ns=pl.col("end_ns").shift(1).over(fields))
    none = pl.Series(dtype=pl.Int64)
    return Spans(pairs.drop_nulls(), none, none)
