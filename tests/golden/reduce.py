"""Makes a large recorded trace small enough for the repository: only what goals and metrics are measured by.

    python -m tests.golden.reduce TRACE tests/golden/NAME.tar.xz

Kept as recorded, with times, CPUs, processes and threads: init events of nodes, publishers, services and clients;
all markers; messages of actions; joint states, the clock, control cycles and simulator steps from 50 ms before a
goal to 50 ms behind it. Everything else is left out, and the kept events are encoded again.
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pytest_ldos.base.ros2 import FIELDS, Marker, Ros2
from pytest_ldos.measure.metrics.extract import find_goals
from pytest_ldos.trace.ctf.read import Column, DecodedTrace, EventTable, read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from tests.builders.ctf import Event, Field, Int, Packet, Record, Text, TraceBuilder

INIT = (Ros2.NODE_INIT, Ros2.PUBLISHER_INIT, Ros2.SERVICE_INIT, Ros2.CLIENT_INIT)
LOOPS = (Marker.CONTROL_CYCLE, Marker.SIM_STEP)
LOOP_TOPICS = ("/joint_states", "/clock")
CONTEXT = ("vpid", "vtid", "procname")
MARGIN_NS = 50_000_000
PER_PACKET = 500


def reduce_trace(source: Path, target: Path) -> Path:
    """Writes the reduced trace to a directory; returns it."""
    trace = read_trace(source, events=NEEDED_EVENTS)
    (info,) = trace.traces
    kept = dict(_select(trace))
    events = {name: Event(name, number, _members(trace.events[name])) for number, name in enumerate(kept)}
    builder = TraceBuilder(
        list(events.values()),
        context=_context(trace.events[Ros2.NODE_INIT]),
        clock_offset=info.clock_offset_ns,
        instances=True,
        environment={"hostname": info.host},
    )
    by_cpu: dict[int, list[Record]] = defaultdict(list)
    for name, rows in kept.items():
        for cpu, record in _records(trace.events[name], rows, events[name], info.clock_offset_ns):
            by_cpu[cpu].append(record)
    return builder.write(target, {f"ros2_{cpu}": _packets(cpu, records) for cpu, records in sorted(by_cpu.items())})


def _select(trace: DecodedTrace) -> Iterator[tuple[str, np.ndarray]]:
    """Names of events with the rows that are kept."""
    model = build_execution(trace)
    goals = find_goals(model).values()
    windows = [(goal.begin_ns - MARGIN_NS, (goal.end_ns or goal.begin_ns) + MARGIN_NS) for goal in goals]
    for name in (*INIT, *Marker):
        if name in trace.events and len(trace.events[name]):
            rows = np.arange(len(trace.events[name]))
            yield name, rows[_within(trace.events[name], rows, windows)] if name in LOOPS else rows
    yield Ros2.RMW_PUBLISH, _publications(trace, windows)


def _publications(trace: DecodedTrace, windows: list[tuple[int, int]]) -> np.ndarray:
    inits, published = trace.events[Ros2.PUBLISHER_INIT], trace.events[Ros2.RMW_PUBLISH]
    topics = inits.columns["topic_name"].texts()
    owners = list(zip(inits["vpid"].tolist(), inits["rmw_publisher_handle"].tolist(), strict=True))
    of_actions = {owner for owner, topic in zip(owners, topics, strict=True) if "/_action/" in topic}
    of_loops = {owner for owner, topic in zip(owners, topics, strict=True) if topic in LOOP_TOPICS}
    publishers = list(zip(published["vpid"].tolist(), published["rmw_publisher_handle"].tolist(), strict=True))
    rows = np.array([row for row, owner in enumerate(publishers) if owner in of_actions | of_loops], dtype=np.intp)
    always = np.array([publishers[row] in of_actions for row in rows], dtype=bool)
    return rows[always | _within(published, rows, windows)]


def _within(table: EventTable, rows: np.ndarray, windows: list[tuple[int, int]]) -> np.ndarray:
    times = table.timestamp_ns[rows]
    return np.any([(first <= times) & (times <= last) for first, last in windows], axis=0)


def _members(table: EventTable) -> dict[str, Field]:
    return {name: _field(table.columns[name]) for name in FIELDS[table.name]}


def _context(table: EventTable) -> dict[str, Field]:
    return {name: _field(table.columns[name]) for name in CONTEXT}


def _field(column: Column) -> Field:
    if column.dictionary is not None:
        return Text()
    assert column.values.ndim == 1, f"{column.name} is a list"
    return Int(8 * column.values.dtype.itemsize, signed=column.values.dtype.kind == "i")


def _records(table: EventTable, rows: np.ndarray, event: Event, offset_ns: int) -> Iterator[tuple[int, Record]]:
    def values(row: int, names: Mapping[str, Any]) -> dict[str, Any]:
        return {name: table.columns[name][row] for name in names}

    for row in rows.tolist():
        time = int(table.timestamp_ns[row]) - offset_ns
        context = values(row, dict.fromkeys(CONTEXT))
        yield int(table.cpu_id[row]), Record(event, time, values(row, event.members), context)


def _packets(cpu: int, records: list[Record]) -> list[Packet]:
    records = sorted(records, key=lambda record: record.time)
    parts = [records[first : first + PER_PACKET] for first in range(0, len(records), PER_PACKET)]
    return [Packet(part, sequence=number, cpu=cpu, instance=cpu) for number, part in enumerate(parts)]


def pack(directory: Path, archive: Path) -> None:
    """A tar.xz whose bytes depend on the trace alone."""
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for file in sorted(directory.iterdir()):
            member = tarfile.TarInfo(f"{directory.name}/{file.name}")
            member.size = file.stat().st_size
            tar.addfile(member, io.BytesIO(file.read_bytes()))


def main() -> None:
    source, archive = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        name = archive.name.removesuffix(".tar.xz")
        pack(reduce_trace(source, Path(folder) / name), archive)


if __name__ == "__main__":
    main()
