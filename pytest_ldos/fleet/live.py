"""Rolling model of a system while it is recorded, from the parts into which its LTTng session is rotated.

The model is that of the last parts, read as one trace. What names entities may be in much earlier parts: these few
events are carried as a small trace. Memory and time do not grow with the length of the recording.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.files import writing
from pytest_ldos.base.ros2 import Marker, PathSpec, Ros2
from pytest_ldos.base.text import (
    NS_PER_MS,
    NS_PER_S,
    counted,
    describe_duration,
    format_duration,
    format_quantity,
    listed,
)
from pytest_ldos.trace.ctf.files import METADATA
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable, read_trace
from pytest_ldos.trace.ctf.stats import LAST_NS
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.execution.threads import ThreadCensus
from pytest_ldos.trace.execution.window_rows import WINDOWED_EVENTS, select_rows
from pytest_ldos.trace.flow.build import build_flow
from pytest_ldos.trace.flow.graph import FlowGraph
from pytest_ldos.trace.flow.lineage import find_path
from pytest_ldos.trace.flow.timeliness import publisher_periods

_NAMING: Final = (frozenset(Ros2) - WINDOWED_EVENTS - {Ros2.LIFECYCLE_TRANSITION}) | {Marker.PHASE}
_MOST_NAMES: Final = 50_000  # events; beyond, those of processes that have ended are dropped
_MOST_PHASES: Final = 200
_SLACK_NS: Final = NS_PER_S  # smallest jump of a clock that is noticed
_DRIFT_NS: Final = NS_PER_MS  # largest drift of that clock within a part
_UNBOUNDED: Final = (-LAST_NS, LAST_NS)
_SILENT_PERIODS: Final = 10
_METADATA: Final = """/* CTF 1.8 */
typealias integer {{ size = 32; align = 8; }} := u32;
typealias integer {{ size = 64; align = 8; signed = true; }} := i64;
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ u32 magic; }}; }};
env {{ hostname = {}; }}; clock {{ name = "monotonic"; freq = 1000000000; offset = 0; }};
typealias integer {{ size = 64; align = 8; map = clock.monotonic.value; }} := stamp;
stream {{ event.header := struct {{ u32 id; stamp timestamp; }}; packet.context := struct {{
  stamp timestamp_begin; stamp timestamp_end; i64 content_size; i64 packet_size; }}; }};
"""


def write_events(trace: DecodedTrace, tables: Mapping[str, EventTable], folder: Path) -> None:
    """Writes events as CTF 1.8, contexts as fields, without fields that some events lack; for errors see `writing`."""
    metadata, rows = _METADATA.format(json.dumps(trace.traces[0].host)), list[tuple[int, bytes]]()
    for number, (name, table) in enumerate(tables.items()):
        fields = [field for each in table.columns.values() if each.valid is None for field in _encode(each)]
        layout = " ".join(declaration for declaration, _ in fields)
        metadata += f'event {{ name = "{name}"; id = {number}; fields := struct {{ {layout} }}; }};\n'
        heads = (np.uint32(number).tobytes() + each.tobytes() for each in table.timestamp_ns)
        contents = map(b"".join, zip(heads, *(values for _, values in fields), strict=True))
        rows += zip(table.timestamp_ns.tolist(), contents, strict=True)
    rows.sort(key=lambda row: row[0])
    body = b"".join(content for _, content in rows)
    context = np.array([*(rows[each][0] if rows else 0 for each in (0, -1)), *[8 * (36 + len(body))] * 2], dtype="<i8")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / METADATA).write_text(metadata, "utf-8")
        (folder / "stream").write_bytes(np.uint32(0xC1FC1FC1).tobytes() + context.tobytes() + body)


def _encode(column: Column) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Declaration and encoded rows of a column; those of its lengths first, for lists of varying length."""
    values, name = column.values.astype("<i8"), f"_{column.name}"  # a reader removes the underscore that LTTng adds
    if column.dictionary is not None:
        yield f"string {name};", (str(text).encode() + b"\0" for text in column.texts())
    elif column.offsets is not None:
        yield f"i64 {name}__size;", (each.tobytes() for each in np.diff(column.offsets))
        yield f"i64 {name}[{name}__size];", (each.tobytes() for each in np.split(values, column.offsets[1:-1]))
    else:
        yield f"i64 {name}{''.join(f'[{each}]' for each in values.shape[1:])};", (each.tobytes() for each in values)


class _Part(NamedTuple):
    folder: Path
    first_ns: int  # time of its first event
    ended_ns: int  # by `time.monotonic_ns`


@dataclass(frozen=True)
class Reading:
    """The last parts, ``None`` if nothing was recorded, and what is new in the newest one, with sentences on it."""

    events: int = 0
    lost: int = 0
    flow: FlowGraph | None = None
    alarms: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class LiveModel:
    """Reads one part after the other. Readings are of the last two, or more for long deadlines."""

    folder: Path  # an empty one, for the names and for links to parts
    paths: Sequence[PathSpec]
    limits_ns: Mapping[str, int]  # deadlines of topics, from a message's publication to each reception
    interval_ns: int
    seen: set[str] = field(default_factory=set)  # ``path NAME`` and ``topic NAME`` whose deadlines were checked
    keep_ns: int | None = None  # length of what `save` writes; older parts are deleted. With ``None``, no part is
    _window: list[_Part] = field(default_factory=list)
    _kept: list[_Part] = field(default_factory=list)
    _offset_ns: tuple[int, int] = _UNBOUNDED  # bounds of `time.monotonic_ns` minus the time of events
    _counted: dict[str, pl.Series] = field(default_factory=dict)  # ends that the last reading had, by path or topic
    _regular: dict[str, tuple[int | None, int]] = field(default_factory=dict)  # period and last message, by topic
    _silent: set[str] = field(default_factory=set)
    _unnamed: Mapping[str, int] = field(default_factory=dict)

    def learn(self, *folders: Path, until_ns: int = LAST_NS) -> None:
        """Adds the names of traces outside the window, as if none was later than `until_ns`."""
        is_new = not folders or self._read(folders, _NAMING)
        if not is_new or not (known := self._read([self.folder / "names", *folders], _NAMING)):
            return
        tables, running = {}, [int(each.name) for each in Path("/proc").glob("[1-9]*")]
        for name, table in known.events.items():
            pids = np.resize(ThreadCensus(known.traces).pids(table), len(table)).astype(np.int32)
            kept = np.isin(pids, running) if len(known) > _MOST_NAMES else np.ones(len(table), dtype=bool)
            kept[: -_MOST_PHASES if name == Marker.PHASE else 0] = False
            columns = {"vpid": Column(name="vpid", values=pids), **table.columns}
            times_ns = np.minimum(table.timestamp_ns, until_ns)
            tables[name] = select_rows(replace(table, timestamp_ns=times_ns, columns=columns), kept)
        write_events(known, tables, self.folder / "names")

    def _read(self, folders: Sequence[Path], events: Collection[str]) -> DecodedTrace | None:
        """Reads parts as one trace; ``None`` if no process was recorded in any."""
        shutil.rmtree(self._links, ignore_errors=True)
        with writing(self._links):
            self._links.mkdir()
            for number, each in enumerate(folders):
                if any(True for _ in each.rglob(METADATA)):
                    (self._links / str(number)).symlink_to(each.absolute())
        found = any(self._links.iterdir())
        return read_trace(self._links, events=events, on_corrupt="skip", threads=1) if found else None

    @property
    def _links(self) -> Path:
        return self.folder / "links"

    def add(self, folder: Path, *, since_ns: int, now_ns: int) -> Reading:
        """Reads the newest part, recorded between `since_ns` and `now_ns` of `time.monotonic_ns`."""
        self._drop_old(now_ns)
        window = [each.folder for each in self._window]
        decoded = self._read([self.folder / "names", *window, folder], NEEDED_EVENTS)
        newest = self._links / str(1 + len(window))
        times = [] if decoded is None else [*_times_in(newest, decoded)]
        reading = Reading(sum(map(len, times)))
        part = _Part(folder, min((int(each[0]) for each in times), default=LAST_NS), now_ns)
        self._kept += [part] if self.keep_ns is not None else []
        last_ns = max((int(each[-1]) for each in times), default=0)
        if times and (jump_ns := self._find_jump(since_ns - part.first_ns, now_ns - last_ns)):
            self.learn(*window, folder)
            self._window, self._counted, self._regular = [], {}, {}
            jump = f"the clock of the recording jumped by {describe_duration(jump_ns / NS_PER_S)}"
            return replace(reading, notes=(f"{jump}: this interval is not measured",))
        if times and not window:
            self.learn(until_ns=part.first_ns - 1)
            decoded = self._read([self.folder / "names", folder], NEEDED_EVENTS)
        self._window.append(part)
        if decoded is None:
            return reading
        lost = sum(each.events for each in decoded.stats.gaps if each.to_ns >= part.first_ns)
        flow = build_flow(build_execution(decoded), self.paths)
        alarms = (*self._find_missed(flow), *self._find_silent(flow, now_ns))
        return replace(reading, lost=lost, flow=flow, alarms=alarms, notes=tuple(self._find_unnamed(flow)))

    def _find_jump(self, least_ns: int, most_ns: int) -> int:
        """Size of a jump of the clock that stamps events, 0 without one, by the bounds of its offset in a part."""
        lower_ns, upper_ns = self._offset_ns
        jump_ns = least_ns - most_ns if least_ns > most_ns + _SLACK_NS else 0
        jump_ns = jump_ns or max(lower_ns - most_ns - _SLACK_NS, 0) or min(upper_ns - least_ns + _SLACK_NS, 0)
        bounds = max(least_ns, lower_ns - _DRIFT_NS), min(most_ns, upper_ns + _DRIFT_NS)
        self._offset_ns = _UNBOUNDED if jump_ns else bounds
        return jump_ns

    def _drop_old(self, now_ns: int) -> None:
        """Removes parts that are too old from the window and from what is kept, before another one is added."""
        limits_ns = [*self.limits_ns.values(), *(each.deadline_ns or 0 for each in self.paths if not each.of_phases)]
        length_ns = self.interval_ns + max([self.interval_ns, *(2 * each for each in limits_ns)])
        while len(self._window) > 1 and now_ns - self._window[0].ended_ns >= length_ns:
            self.learn(self._window.pop(0).folder)
        for each in self._kept[: max(len(self._kept) - len(self._window), 0)]:
            if now_ns - each.ended_ns > (self.keep_ns or 0):
                shutil.rmtree(each.folder, ignore_errors=True)
                self._kept.remove(each)

    def _find_unnamed(self, flow: FlowGraph) -> Iterator[str]:
        before, self._unnamed = self._unnamed, dict(flow.model.unknown)
        if self._unnamed.keys() - before.keys():
            kinds = [counted(count, table.removesuffix("s")) for table, count in self._unnamed.items()]
            missing = "without topics and nodes, and thus paths and deadlines; all else can be watched"
            yield f"made before the session began: {listed(kinds, 4)}; {missing}. With a recording of it: --names TRACE"

    def _find_missed(self, flow: FlowGraph) -> Iterator[str]:
        for path in self.paths:
            if path.deadline_ns is not None:
                yield from self._describe_missed(f"path {path.name}", find_path(flow, path).table, path.deadline_ns)
        topic = flow.model.publishers.select("topic", publisher="id")
        sent = flow.model.publications.select("publisher", publication="id").join(topic, on="publisher")
        taken = flow.model.takes.select(take="id", end_ns="time_ns")
        for name, limit_ns in self.limits_ns.items():
            own = flow.transport.join(sent.filter(pl.col("topic") == name), on="publication").join(taken, on="take")
            yield from self._describe_missed(f"topic {name}", own, limit_ns)

    def _describe_missed(self, name: str, found: pl.DataFrame, limit_ns: int) -> Iterator[str]:
        """An alarm if rows that the last reading lacked, with `end_ns` and `latency_ns`, exceed a limit."""
        before, self._counted[name] = self._counted.get(name, found["end_ns"].head(0)), found["end_ns"]
        new_ns = found.filter(~pl.col("end_ns").is_in(before.implode()))["latency_ns"].to_numpy()
        late_ns = new_ns[new_ns > limit_ns]
        self.seen |= {name} if len(new_ns) else set()
        if len(late_ns):
            limit, longest = map(format_duration, (limit_ns, late_ns.max()))
            yield f"missed deadline: {name}: {len(late_ns)} of {len(new_ns)} above {limit}, the longest {longest}"

    def _find_silent(self, flow: FlowGraph, now_ns: int) -> Iterator[str]:
        """An alarm for each topic whose regular messages ended."""
        topic = flow.model.publishers.select("topic", publisher="id").drop_nulls()
        last = flow.model.publications.group_by("publisher").agg(pl.col("time_ns").max())
        found = topic.join(publisher_periods(flow.model), on="publisher").join(last, on="publisher").group_by("topic")
        for name, period_ns, last_ns in found.agg(pl.col("period_ns", "time_ns").max()).sort("topic").iter_rows():
            self._regular[name] = (period_ns or self._regular.get(name, (None, 0))[0], last_ns)
        for name, (period_ns, last_ns) in self._regular.items():
            since_ns = now_ns - self._offset_ns[1] - last_ns
            if period_ns is None or since_ns <= max(_SILENT_PERIODS * period_ns, self.interval_ns):
                self._silent.discard(name)
            elif name not in self._silent:
                self._silent.add(name)
                before = format_quantity(NS_PER_S / period_ns, "Hz")
                yield f"silent topic: {name}: no message for {format_duration(since_ns)}, before {before}"

    def save(self, target: Path) -> None:
        """Writes the kept parts, and names from before them, as one trace in a new folder; raises as `writing` does."""
        place, first_ns = target / "archives", min(each.first_ns for each in self._kept)
        with writing(target):
            target.mkdir(parents=True)
        try:
            if known := self._read([self.folder / "names"], _NAMING):
                earlier = {name: select_rows(each, each.timestamp_ns < first_ns) for name, each in known.events.items()}
                write_events(known, earlier, place / "names")
            with writing(target):
                for part in self._kept:  # a second name takes no room
                    shutil.copytree(part.folder, place / part.folder.name, copy_function=_link_or_copy)
        except LdosError:
            shutil.rmtree(target, ignore_errors=True)
            raise


def _times_in(folder: Path, decoded: DecodedTrace) -> Iterator[npt.NDArray[np.int64]]:
    """Times of the events in a folder of a trace, by event."""
    own = [number for number, each in enumerate(decoded.traces) if folder in each.directory.parents]
    for table in decoded.events.values():
        times_ns = table.timestamp_ns[np.isin(table.trace, own)]
        if len(times_ns):
            yield times_ns


def _link_or_copy(file: str, copy: str) -> None:
    with writing(Path(copy)):
        try:
            os.link(file, copy)
        except OSError:  # another file system
            shutil.copyfile(file, copy)
