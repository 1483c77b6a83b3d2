"""Compares the decoder with its peers, its limit and its own promises, and times the model, in one run.

    make bench                                # on a trace of 12 million events, made once
    make bench ARGS="--trace DIRECTORY"       # on yours, without the loop by hand
    make bench ARGS="--events 3000000 --repeats 3"

Speeds are millions of events a second by the wall clock; `ns CPU` is what an event costs in all
threads and the kernel, and is what to compare where others use the machine's cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.generated_trace import EVENTS, generated_trace
from benchmarks.peers import (
    ALL_FIELDS,
    ITERATE,
    babeltrace_graph,
    babeltrace_python,
    specialised,
    total_of,
    yactfr_count,
    yactfr_counter,
)
from benchmarks.timing import Cost, cost_of, least_costs
from pytest_ldos.trace.ctf.read import DecodedTrace, read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.flow.build import build_flow
from tests.oracles.babeltrace import why_unavailable

REPEATS = 5
PAIRS = 12
ITERATED = 500_000
FIELDS_READ = 50_000

console = Console(width=120)
Rows = Iterable[tuple[str, int, Cost]]


def show(title: str, rows: Rows, *, ours: Cost, events: int) -> None:
    """Speeds, and how many times the CPU and wall seconds an event of ours takes."""
    heads = ("M events/s", "ns CPU an event", "in the kernel", "wall, ours = 1", "CPU, ours = 1")
    table = Table("", *heads, title=title, title_justify="left")
    for name, count, cost in rows:
        wall, cpu = cost.wall_s / count, cost.cpu_s / count
        table.add_row(
            name,
            f"{1e-6 / wall:.2f}",
            f"{cpu * 1e9:.1f}",
            f"{cost.kernel_s / count * 1e9:.1f}",
            f"{wall / ours.wall_s * events:.2f} ×",
            f"{cpu / ours.cpu_s * events:.2f} ×",
        )
    console.print(table)


def measure_speed(trace: Path, repeats: int) -> tuple[Cost, Cost]:
    """One thread and two, interleaved."""
    works = {str(threads): partial(read_trace, trace, threads=threads) for threads in (1, 2)}
    costs = least_costs(works, repeats)
    return costs["1"], costs["2"]


def measure_babeltrace(trace: Path, events: int) -> Rows:
    if why_unavailable():
        console.print(f"babeltrace2 was not measured: {why_unavailable()}")
        return
    graph = least_costs({"": partial(babeltrace_graph, trace)}, 2)[""]
    yield "babeltrace2, C graph, dummy sink", events, graph
    for name, program, some in (("iterating", ITERATE, ITERATED), ("all fields", ALL_FIELDS, FIELDS_READ)):
        count = min(some, events)
        yield f"babeltrace2, Python, {name}", count, cost_of(partial(babeltrace_python, program, trace, count))


def measure_yactfr(trace: Path, events: int) -> Rows:
    program = yactfr_counter()
    if program is None:
        console.print("yactfr was not measured: build benchmarks/readers/yactfr_count.cpp, and put it on the PATH")
        return
    counted = yactfr_count(program, trace)
    assert counted == events, f"yactfr read {counted} events of {events}"
    yield "yactfr, all fields, not merged", events, least_costs({"": partial(yactfr_count, program, trace)}, 2)[""]


def measure_limit(decoded: DecodedTrace, repeats: int) -> Rows:
    """The loop by hand, which must have found what we found."""
    limit = specialised(decoded, repeats)
    assert limit.events == len(decoded), (limit.events, len(decoded))
    assert limit.total == total_of(decoded), "the loop by hand has other values in its columns"
    yield "loop by hand for this trace", limit.events, limit.cost


def measure_projections(trace: Path, decoded: DecodedTrace, repeats: int) -> Rows:
    """Speeds in events of the whole trace: what is not wanted should cost next to nothing."""
    name = max(decoded.events, key=lambda each: len(decoded.events[each]))
    times = decoded.events[name].timestamp_ns
    middle = (int(times[len(times) // 2]), int(times[len(times) // 2 + len(times) // 100]))
    works = {
        "one event, all fields": partial(read_trace, trace, events=[name], threads=1),
        "all events, field vtid": partial(read_trace, trace, fields=["vtid"], threads=1),
        "all events, no field": partial(read_trace, trace, fields=["-"], threads=1),
        "a window of 1 %, all fields": partial(read_trace, trace, window=middle, threads=1),
    }
    for label, cost in least_costs(works, repeats).items():
        yield label, len(decoded), cost


def measure_growth(events: int, repeats: int) -> Rows:
    traces = {part: generated_trace(events // part) for part in (4, 2, 1)}
    works = {str(part): partial(read_trace, trace, threads=1) for part, trace in traces.items()}
    for part, cost in least_costs(works, repeats).items():
        count = len(read_trace(traces[int(part)], fields=["-"]))
        yield f"{count:,} events", count, cost


def measure_model(trace: Path, repeats: int) -> Rows:
    """Cost of reading the model's events, of building the model, and of linking its messages."""
    read = partial(read_trace, trace, events=NEEDED_EVENTS)
    model = build_execution(read())
    works: dict[str, Callable[[], object]] = {
        "trace → tables": read,
        "trace → tables → model": lambda: build_execution(read()),
        "model → message flow": partial(build_flow, model),
    }
    for label, cost in least_costs(works, repeats).items():
        yield label, model.stats.events, cost


def two_reads_at_once(trace: Path) -> list[DecodedTrace]:
    """Two reads that share nothing: what two threads could gain at the most on this machine."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda _: read_trace(trace, threads=1), range(2)))


def show_share(trace: Path, pairs: int) -> None:
    """Wall-clock gain of two threads over one, and of two separate reads, in medians of interleaved runs."""
    shared, separate, shares = [], [], []
    for _ in range(pairs):
        one = cost_of(partial(read_trace, trace, threads=1)).wall_s
        shared.append(one / cost_of(partial(read_trace, trace, threads=2)).wall_s)
        separate.append(2 * one / cost_of(partial(two_reads_at_once, trace)).wall_s)
        shares.append(shared[-1] / separate[-1])
    console.print(
        f"Two threads gain {statistics.median(shared):.2f} times the speed of one, two separate reads"
        f" {statistics.median(separate):.2f} times: a share of {statistics.median(shares):.2f}, the median of {pairs}"
        f" interleaved pairs ({min(shares):.2f} to {max(shares):.2f})."
    )


def show_memory(trace: Path) -> None:
    table = Table("anonymous memory", "columns", "peak", "peak / columns", title="Memory", title_justify="left")
    for threads in (1, 2):
        for label, events in (("all events", []), ("one event", ["ros2:rmw_take"])):
            command = [sys.executable, "-m", "benchmarks.memory", str(trace), str(threads), *events]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            columns, peak = found["columns"], found["peak"]
            name = f"{label}, {threads} thread{'s' if threads > 1 else ''}"
            table.add_row(name, f"{columns / 1e6:.0f} MB", f"{peak / 1e6:.0f} MB", f"{peak / columns:.3f}")
    console.print(table)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, help="read this one")
    parser.add_argument("--events", type=int, default=EVENTS, help="of the generated trace")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, help="pairs of runs with one and two threads, and of two separate reads"
    )
    return parser.parse_args()


def main() -> None:
    options = arguments()
    trace = options.trace or generated_trace(options.events)
    one, two = measure_speed(trace, options.repeats)
    decoded = read_trace(trace)
    events = len(decoded)
    rows: list[tuple[str, int, Cost]] = [
        ("pytest-ldos, 1 thread", events, one),
        ("pytest-ldos, 2 threads", events, two),
    ]
    if options.trace is None:
        rows += measure_limit(decoded, options.repeats)
    rows += [*measure_babeltrace(trace, events), *measure_yactfr(trace, events)]
    show(f"{events:,} events on {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}", rows, ours=one, events=events)
    console.print(
        f"Two threads are {one.wall_s / two.wall_s:.2f} times as fast as one; the busier of the two takes"
        f" {two.busiest_s / one.busiest_s:.2f} times the CPU of one alone."
    )
    show_share(trace, options.pairs)
    show("Projection and window", measure_projections(trace, decoded, options.repeats), ours=one, events=events)
    show("Model and flow, two threads", measure_model(trace, options.repeats), ours=one, events=events)
    show_memory(trace)
    if options.trace is None:
        del decoded
        show("Growth", measure_growth(options.events, options.repeats), ours=one, events=events)


if __name__ == "__main__":
    main()
