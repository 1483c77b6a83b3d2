"""Context switches recorded by perf alongside a trace, in the table format of lttng-modules.

Reads what ``perf record --switch-events -a`` writes: the thread that leaves a CPU, preempted or not, and the next one.
Other records are skipped. perf records no wakeups: a thread counts as blocked until it runs again.

Reference: Linux, ``tools/perf/Documentation/perf.data-file-format.txt``; ``perf_event_open(2)``
(``PERF_RECORD_SWITCH_CPU_WIDE``, ``sample_id_all``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from pytest_ldos.base.errors import TraceUnreadable
from pytest_ldos.base.ros2 import Kernel
from pytest_ldos.trace.ctf.files import opened
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable
from pytest_ldos.trace.ctf.stats import Gap, StreamStats, TraceInfo

_MAGIC: Final = b"PERFILE2"
_HEADER: Final = struct.Struct("<8sQQQQQQ")
"""Magic, sizes of header and attribute, and sections (offset, size) of attributes and data."""

_RECORD: Final = struct.Struct("<IHH")
_SAMPLE_TYPE, _FLAGS, _CLOCK = 24, 40, 92  # offsets in an attribute (``struct perf_event_attr``)

_SAMPLE_ID_ALL: Final = 1 << 18
_USE_CLOCKID: Final = 1 << 25
_CLOCK_MONOTONIC: Final = 1
_TID, _TIME, _CPU = 1 << 1, 1 << 2, 1 << 7
_IDS: Final = {1 << 6: "id", 1 << 9: "stream_id", 1 << 16: "identifier"}

_LOST, _COMM, _FORK, _SWITCH = 2, 3, 7, 15
OUT, PREEMPTED = 1 << 13, 1 << 14
_REMEDY: Final = "record it again with `perf record -e dummy:u --switch-events -k mono -a`"

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass
class PerfRecords:
    """Records of one file; times are nanoseconds of ``CLOCK_MONOTONIC``, in no order over CPUs.

    Attributes:
        switches: columns ``time``, ``cpu``, ``tid``, ``other`` (the previous or next thread), ``misc``;
            a thread that exits has number -1.
        names: last name of each thread, by tid.
        losses: time and CPU of each report of a loss, and the number of lost records.
    """

    switches: npt.NDArray[Any]
    names: dict[int, str] = field(default_factory=dict)
    losses: list[tuple[int, int, int]] = field(default_factory=list)

    def have(self, bit: int) -> Flags:
        """Flag of each switch: `OUT` if the thread leaves its CPU, else it gets it; `PREEMPTED` if it is runnable."""
        found: Flags = (self.switches["misc"] & bit) != 0
        return found


def read_perf_records(path: Path) -> PerfRecords:
    """Reads a data file, a truncated one up to its last whole record; raises `TraceUnreadable` if it is invalid."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TraceUnreadable(path, None, f"cannot be read: {error.strerror}") from None
    if len(content) < _HEADER.size or not content.startswith(_MAGIC):
        raise TraceUnreadable(path, 0, "is no data file of perf", remedy=_REMEDY)
    _, _, _, attributes, attributes_size, begin, size = _HEADER.unpack_from(content)
    fields = _trailer_of(path, content, attributes, attributes_size)
    head = [("type", "<u4"), ("misc", "<u2"), ("size", "<u2"), ("other_pid", "<i4"), ("other", "<i4")]
    switch, trailer = np.dtype([*head, *fields]), np.dtype(fields)
    end = min(begin + size, len(content)) if size else len(content)
    found, parts = PerfRecords(np.empty(0, dtype=switch)), []
    while begin + _RECORD.size <= end:
        kind, _, length = _RECORD.unpack_from(content, begin)
        if length < _RECORD.size or begin + length > end:
            break
        if kind == _SWITCH and length == switch.itemsize:
            parts.append(_consecutive_switches(content, switch, begin, end))
            length = parts[-1].nbytes
        else:
            _read_other(found, kind, content[begin : begin + length], trailer)
        begin += length
    if parts:
        found.switches = np.concatenate(parts)
    return found


def _trailer_of(path: Path, content: bytes, place: int, size: int) -> list[tuple[str, str]]:
    """Fields after each record, as the first attribute defines them."""
    if size < _CLOCK + 4 or place + size > len(content):
        raise TraceUnreadable(path, place, "its attributes are damaged", remedy=_REMEDY)
    (kinds,), (flags,) = (struct.unpack_from("<Q", content, place + offset) for offset in (_SAMPLE_TYPE, _FLAGS))
    (clock,) = struct.unpack_from("<i", content, place + _CLOCK)
    if not flags & _SAMPLE_ID_ALL or ~kinds & (_TID | _TIME | _CPU):
        raise TraceUnreadable(path, place, "its records lack thread, time or CPU", remedy=_REMEDY)
    if not flags & _USE_CLOCKID or clock != _CLOCK_MONOTONIC:
        raise TraceUnreadable(path, place, "its clock is not CLOCK_MONOTONIC", remedy=_REMEDY)
    before = [(name, "<u8") for bit, name in _IDS.items() if kinds & bit and name != "identifier"]
    behind = [("identifier", "<u8")] if kinds & 1 << 16 else []
    return [("pid", "<i4"), ("tid", "<i4"), ("time", "<u8"), *before, ("cpu", "<i4"), ("reserved", "<u4"), *behind]


def _consecutive_switches(
    content: bytes, switch: np.dtype[Any], place: int, end: int, most: int = 1 << 14
) -> npt.NDArray[Any]:
    found = np.frombuffer(content, switch, min((end - place) // switch.itemsize, most), place)
    others = np.flatnonzero((found["type"] != _SWITCH) | (found["size"] != switch.itemsize))
    return found[: others[0]] if others.size else found


def _read_other(found: PerfRecords, kind: int, record: bytes, trailer: np.dtype[Any]) -> None:
    """Reads the name of a thread or of its parent, or a loss."""
    body, behind = _RECORD.size, len(record) - trailer.itemsize
    if behind < body + 8:
        return
    if kind == _COMM:
        (tid,) = struct.unpack_from("<4xi", record, body)
        found.names[tid] = record[body + 8 : behind].partition(b"\0")[0].decode("utf-8", "replace")
    elif kind == _FORK:
        tid, parent = struct.unpack_from("<8xii", record, body)
        found.names[tid] = found.names.get(parent, "")
    elif kind == _LOST:
        stamp = np.frombuffer(record, trailer, 1, behind)[0]
        (lost,) = struct.unpack_from("<8xQ", record, body)
        found.losses.append((int(stamp["time"]), int(stamp["cpu"]), lost))


SWITCHES_FOLDER: Final = "switches"
"""Folder of perf's data files in a trace's folder; one file per resumption of the recording."""

_IDLE, _ENDED = 0, -1  # thread ids: of the idle threads, and of an exiting thread
_RUNS_ON, _SLEEPS, _DEAD = 0, 1, 0x10  # values of `prev_state`: none, ``TASK_INTERRUPTIBLE``, ``EXIT_DEAD``


def with_switches(trace: DecodedTrace) -> DecodedTrace:
    """Adds perf's context switches to a trace without kernel events; raises `TraceUnreadable` if a file is damaged."""
    clocks = [each for each in trace.traces if each.domain == "ust"]
    own = trace.events.get(Kernel.SWITCH)
    if not clocks or (own is not None and len(own)):
        return trace
    found = _records(trace)
    if not found:
        return trace
    origin, number = clocks[0], len(trace.traces)
    files, parts = list(found), list(found.values())
    environment: Mapping[str, str | int] = {"hostname": origin.host, "domain": "kernel", "tracer_name": "perf"}
    info = TraceInfo(files[0].parent, environment, origin.clock, origin.clock_offset_ns)
    events = sum(len(part.switches) for part in parts)
    stream = StreamStats(files[0], number, len(parts), events, 0, tuple(_gaps(parts, origin.clock_offset_ns)))
    return replace(
        trace,
        events={**trace.events, Kernel.SWITCH: _to_table(parts, origin.clock_offset_ns, number)},
        traces=(*trace.traces, info),
        stats=replace(trace.stats, streams=(*trace.stats.streams, stream)),
    )


def thread_owners(trace: DecodedTrace) -> dict[int, int]:
    """Pid of each thread that perf saw, by tid; raises `TraceUnreadable` if a file is damaged."""
    parts = [each.switches[["tid", "pid"]] for each in _records(trace).values()]
    return dict(np.unique(np.concatenate(parts)).tolist()) if parts else {}


def _records(trace: DecodedTrace) -> dict[Path, PerfRecords]:
    with opened(trace.directory) as found:
        files = sorted((found.folder / SWITCHES_FOLDER).glob("*.data"))
        return {found.name_of(file): read_perf_records(file) for file in files}


def _to_table(parts: Sequence[PerfRecords], offset_ns: int, number: int) -> EventTable:
    """One row per switch: perf's record of the leaving thread, or else of the next thread."""
    switches = np.concatenate([part.switches for part in parts])
    is_out, preempted = (np.concatenate([part.have(bit) for part in parts]) for bit in (OUT, PREEMPTED))
    one = is_out | ~_follows_its_out(switches, is_out)
    order = np.flatnonzero(one)[np.argsort(switches["time"][one], kind="stable")]
    found, leaves = switches[order], is_out[order]
    tids, others, times = (found[name].astype(np.int64) for name in ("tid", "other", "time"))
    before, after = np.where(leaves, tids, others), np.maximum(np.where(leaves, others, tids), _IDLE)
    has_ended = before <= _ENDED
    before = np.where(has_ended, _occupants(found["cpu"].astype(np.int64), after), before)
    state = np.where(has_ended, _DEAD, np.where(preempted[order], _RUNS_ON, _SLEEPS))
    known = before > _ENDED
    found, times, before, after, state = found[known], times[known], before[known], after[known], state[known]
    names = {tid: name for part in parts for tid, name in part.names.items()}
    columns = [
        _names("prev_comm", before, names),
        Column(name="prev_tid", values=before.astype(np.int32)),
        Column(name="prev_state", values=state),
        _names("next_comm", after, names),
        Column(name="next_tid", values=after.astype(np.int32)),
    ]
    return EventTable(
        Kernel.SWITCH,
        times + offset_ns,
        found["cpu"].astype(np.int32),
        np.full(len(found), number, dtype=np.uint32),
        {column.name: column for column in columns},
    )


def _follows_its_out(switches: npt.NDArray[Any], is_out: Flags) -> Flags:
    """True for a record of a thread that gets the CPU, if the record before already names it as the next thread.

    Idle threads and some kernel threads have no records of their own.
    """
    order = np.lexsort((switches["time"], switches["cpu"]))
    then, here = order[:-1], order[1:]
    found = np.zeros(len(switches), dtype=np.bool_)
    is_pair = is_out[then] & ~is_out[here] & (switches["cpu"][then] == switches["cpu"][here])
    found[here] = is_pair & (switches["other"][then] == switches["tid"][here])
    return found


def _occupants(cpus: Ints, after: Ints) -> Ints:
    """Thread that had the CPU before each switch, from the previous switch on it; `_ENDED` if there is none."""
    before = pl.col("thread").shift(1).over("cpu").fill_null(_ENDED)
    return pl.DataFrame({"cpu": cpus, "thread": after}).select(before).to_series().to_numpy()


def _names(name: str, tids: Ints, names: Mapping[int, str]) -> Column:
    distinct, codes = np.unique(tids, return_inverse=True)
    words = tuple("swapper" if tid == _IDLE else names.get(tid, "") for tid in distinct.tolist())
    return Column(name=name, values=codes.astype(np.int32), dictionary=words)


def _gaps(parts: Sequence[PerfRecords], offset_ns: int) -> Iterator[Gap]:
    """Spans without records: between two files, and before each report of a loss."""
    for part in parts:
        for time_ns, cpu, lost in part.losses:
            times = part.switches["time"][part.switches["cpu"] == cpu]
            earlier = times[times <= time_ns]
            since_ns = int(earlier.max()) if earlier.size else 0
            yield Gap(since_ns + offset_ns, time_ns + offset_ns, lost, 0)
    spans = [(int(each.min()), int(each.max())) for part in parts if (each := part.switches["time"]).size]
    for (_, ended_ns), (began_ns, _) in pairwise(sorted(spans)):
        yield Gap(ended_ns + offset_ns, began_ns + offset_ns - 1, 0, 0)
