"""Compares memory and time of windows with the whole read, for traces of rising length: of the model, and of ``ldos analyze``.

    python -m benchmarks.windows                   # generated traces of 10^6 and 10^7 events
    python -m benchmarks.windows --large           # also of 10^8: 4 GB of trace on the disk, and some minutes
    python -m benchmarks.windows --events 5000000
    python -m benchmarks.windows --one TRACE model|analysis windows|whole

Each reading is a process of its own, so that nothing is counted that was there before. Anonymous memory is what the
kernel cannot drop; tables that are mapped from files are not in it. A trace above 2·10^7 events is read in windows only.
CPU times are also given as a share of babeltrace2's, which counts the same events right before.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest import mock

from rich.console import Console
from rich.table import Table

from benchmarks.generated_trace import generated_trace
from benchmarks.memory import PeakSampler, anonymous_bytes
from benchmarks.peers import babeltrace_count
from benchmarks.timing import cost_of_children
from pytest_ldos.cli import analyze, traces
from pytest_ldos.trace.ctf.read import open_in_windows, read_trace
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution, build_execution_in_windows
from tests.oracles.babeltrace import why_unavailable

EVENTS = (1_000_000, 10_000_000)
LARGE = 100_000_000
LARGEST_WHOLE = 20_000_000
"""Longer traces are read in windows only."""


def read_whole(trace: Path) -> None:
    build_execution(read_trace(trace, events=NEEDED_EVENTS))


def read_in_windows(trace: Path) -> None:
    with open_in_windows(trace) as windows:
        build_execution_in_windows(windows)


def analyze_trace(trace: Path, *, fits: bool) -> None:
    """Runs the command, which reads in windows of its own choice what does not fit."""
    with (
        mock.patch.object(traces, "_fits", return_value=fits),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        analyze.analyze([trace])


WORKS: dict[tuple[str, str], Callable[[Path], None]] = {
    ("model", "whole"): read_whole,
    ("model", "windows"): read_in_windows,
    ("analysis", "whole"): partial(analyze_trace, fits=True),
    ("analysis", "windows"): partial(analyze_trace, fits=False),
}


def measure_one(trace: Path, what: str, way: str) -> None:
    """Prints the cost of one reading."""
    before = anonymous_bytes()
    sampler = PeakSampler()
    sampler.start()
    cpu = time.process_time()
    WORKS[what, way](trace)
    cpu = time.process_time() - cpu
    print(json.dumps({"cpu_s": cpu, "peak": sampler.stop() - before}))


def measured(trace: Path, what: str, way: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.windows", "--one", str(trace), what, way]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=lambda text: int(float(text)), nargs="+", default=EVENTS)
    parser.add_argument("--large", action="store_true", help=f"also {LARGE:,} events")
    parser.add_argument("--one", nargs=3, metavar=("TRACE", "WHAT", "WAY"), help="one reading in this process")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.one:
        trace, what, way = options.one
        measure_one(Path(trace), what, way)
        return
    heads = ("CPU", "ns CPU an event", "CPU, babeltrace2 = 1", "peak anonymous memory")
    table = Table("", *heads, title="Windows", title_justify="left")
    for events in (*options.events, *([LARGE] if options.large else [])):
        trace = generated_trace(events)
        for what, way in WORKS:
            if way == "whole" and events > LARGEST_WHOLE:
                continue
            counting = 0.0 if why_unavailable() else cost_of_children(partial(babeltrace_count, trace)).cpu_s
            cost = measured(trace, what, way)
            table.add_row(
                f"{events:,} events, {what}, {'in windows' if way == 'windows' else 'whole'}",
                f"{cost['cpu_s']:.2f} s",
                f"{cost['cpu_s'] / events * 1e9:.0f}",
                f"{cost['cpu_s'] / counting:.2f}" if counting else why_unavailable(),
                f"{cost['peak'] / 1e6:.0f} MB",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
