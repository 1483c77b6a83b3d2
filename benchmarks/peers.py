"""References for the decoder: babeltrace2, yactfr where it is installed, and a loop written by hand for one trace."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.generated_trace import BUILD
from benchmarks.timing import Cost, run
from pytest_ldos.trace.ctf.read import DecodedTrace, NumberArray

SYSTEM_PYTHON = "/usr/bin/python3"

ITERATE = """
import bt2, itertools, sys
events = (m for m in bt2.TraceCollectionMessageIterator(sys.argv[1]) if type(m) is bt2._EventMessageConst)
print(sum(1 for _ in itertools.islice(events, int(sys.argv[2]))))
"""

ALL_FIELDS = """
import bt2, itertools, sys
events = (m for m in bt2.TraceCollectionMessageIterator(sys.argv[1]) if type(m) is bt2._EventMessageConst)
count = 0
for message in itertools.islice(events, int(sys.argv[2])):
    event = message.event
    for scope in (event.common_context_field, event.payload_field):
        for name in scope or ():
            scope[name]
    count += 1
print(count)
"""

_SPECIALISED = Path(__file__).with_name("limit") / "specialised.cpp"


def babeltrace_graph(trace: Path) -> None:
    """babeltrace2's C graph into its dummy sink: its cost without a reader of the events."""
    run("babeltrace2", str(trace), "-c", "sink.utils.dummy")


def babeltrace_count(trace: Path) -> int:
    """Events that babeltrace2's C graph counts, which are those of the whole trace."""
    found = run("babeltrace2", str(trace), "-c", "sink.utils.counter", "-p", "step=+0")
    return next(int(line.split()[0]) for line in found.splitlines() if line.endswith(" Event messages"))


def yactfr_counter() -> str | None:
    """The program of `readers/yactfr_count.cpp`, which its user builds; ``None`` if there is none."""
    return os.environ.get("YACTFR_COUNT") or shutil.which("yactfr-count")


def yactfr_count(program: str, trace: Path) -> int:
    """Events that yactfr decodes, with every field, stream by stream: nothing is merged by time or kept."""
    return int(run(program, str(trace)))


def babeltrace_python(program: str, trace: Path, events: int) -> None:
    """The first `events` events through babeltrace2's Python bindings."""
    found = int(run(SYSTEM_PYTHON, "-c", program, str(trace), str(events)))
    assert found == events, f"babeltrace2 read {found} events of {events}"


@dataclass(frozen=True)
class Specialised:
    """Result and cost of the loop by hand; `total` is the sum of all its columns, modulo 2^64."""

    events: int
    total: int
    cost: Cost


def specialised(decoded: DecodedTrace, repeats: int) -> Specialised:
    """Runs the loop by hand over the streams of a generated trace."""
    program = BUILD / "specialised"
    subprocess.run(["g++", "-std=c++20", "-O3", str(_SPECIALISED), "-o", str(program)], check=True)
    streams = [str(stream.path) for stream in decoded.stats.streams]
    offset_ns = decoded.traces[0].clock_offset_ns
    events, total, *seconds = run(str(program), str(repeats), str(offset_ns), *streams).split()
    wall_s, cpu_s, kernel_s = map(float, seconds)
    return Specialised(int(events), int(total), Cost(wall_s, cpu_s, kernel_s))


def total_of(decoded: DecodedTrace) -> int:
    """The same sum over our columns: the frequent events of the generator, but no codes of text."""
    total = 0
    for name, table in decoded.events.items():
        if name.endswith(("_init", "_added", "_register")):
            continue
        numbers: list[NumberArray] = [table.timestamp_ns, table.cpu_id]
        numbers += [column.values for column in table.columns.values() if column.dictionary is None]
        for values in numbers:
            total += int(values.astype(np.uint64).sum(dtype=np.uint64))
    return total % 2**64
