"""Reads one trace with our decoder and with babeltrace2, in one run on one machine.

    make bench                          # records a trace of its own
    make bench ARGS="path/to/trace"     # or reads yours

Speeds are events a second; the last column is ours over the peer's. Each figure is the
best of several runs: what disturbs a machine only ever makes it slower.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pytest_ldos.ctf.read import read_trace
from pytest_ldos.recording.lttng import LttngRecorder, lttng_available
from tests.oracles.babeltrace import why_unavailable

EVENTS = 2_000_000
REPEATS = 3
SYSTEM_PYTHON = "/usr/bin/python3"

EMIT = """
import sys
from pytest_ldos.dds.emission import emit
for number in range(int(sys.argv[1]) // 8):
    emit.rclcpp_executor_execute(number)
    emit.rmw_take(1, number, number, True)
    emit.rcl_take(number)
    emit.callback_start(7, False)
    emit.rclcpp_publish(number)
    emit.rcl_publish(3, number)
    emit.rmw_publish(4, number, number)
    emit.callback_end(7)
"""

ITERATE = """
import bt2, sys
print(sum(type(m) is bt2._EventMessageConst for m in bt2.TraceCollectionMessageIterator(sys.argv[1])))
"""

ALL_FIELDS = """
import bt2, itertools, sys
count = 0
for message in bt2.TraceCollectionMessageIterator(sys.argv[1]):
    if type(message) is bt2._EventMessageConst:
        event = message.event
        for scope in (event.common_context_field, event.payload_field):
            for name in scope or ():
                scope[name]
        count += 1
        if count == int(sys.argv[2]):
            break
print(count)
"""


def record(directory: Path) -> Path:
    """A trace of `EVENTS` events, recorded here."""
    lttng_available().demand()
    recorder = LttngRecorder(directory / "trace", directory)
    try:
        recorder.start()
        environment = {**os.environ, **recorder.environment}
        for _ in range(2):
            command = [*recorder.prefix, sys.executable, "-c", EMIT, str(EVENTS // 2)]
            subprocess.run(command, env=environment, check=True)
        recorder.pause()
    finally:
        recorder.stop()
    return directory / "trace"


def best_seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def measure(trace: Path) -> list[tuple[str, float]]:
    """Events a second of each reader."""
    events = len(read_trace(trace))
    some = min(events, 100_000)
    pages = str(trace)
    rows = [("pytest-ldos, one thread, all fields", events / best_seconds(lambda: read_trace(trace, threads=1)))]
    rows += [("pytest-ldos, all CPUs, all fields", events / best_seconds(lambda: read_trace(trace)))]
    rows += [
        ("pytest-ldos, one thread, no field", events / best_seconds(lambda: read_trace(trace, threads=1, fields=["-"])))
    ]
    if why_unavailable():
        Console().print(f"babeltrace2 was not measured: {why_unavailable()}")
        return rows
    rows += [
        (
            "babeltrace2, C graph into its dummy sink",
            events / best_seconds(lambda: run("babeltrace2", pages, "-c", "sink.utils.dummy")),
        )
    ]
    rows += [
        ("babeltrace2, Python, iterating", events / best_seconds(lambda: run(SYSTEM_PYTHON, "-c", ITERATE, pages), 1))
    ]
    fields = best_seconds(lambda: run(SYSTEM_PYTHON, "-c", ALL_FIELDS, pages, str(some)), 1)
    rows += [("babeltrace2, Python, all fields", some / fields)]
    return rows


def show(trace: Path, rows: list[tuple[str, float]]) -> None:
    table = Table("reader", "million events/s", "ours is faster by", title=f"{len(read_trace(trace)):,} events")
    ours = rows[0][1]
    for name, speed in rows:
        table.add_row(name, f"{speed / 1e6:.2f}", f"{ours / speed:.1f} ×")
    Console().print(table)


def main() -> None:
    if len(sys.argv) > 1:
        show(Path(sys.argv[1]), measure(Path(sys.argv[1])))
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = record(Path(folder))
        show(trace, measure(trace))


if __name__ == "__main__":
    main()
