"""Memory and time of a model that is built in windows, beside the whole read, for traces of rising length.

    python -m benchmarks.windows [EVENTS…]         # of generated traces, 10^6 and 10^7 by default; 10^8 takes 4 GB of disk
    python -m benchmarks.windows --one TRACE windows|whole

Each reading is a process of its own, so that nothing is counted that was there before. Anonymous memory is what the
kernel cannot drop; tables that are mapped from files are not in it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.generated_trace import generated_trace
from benchmarks.memory import PeakSampler, anonymous_bytes
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.ctf.windows import open_in_windows
from pytest_ldos.trace.execution.build import NEEDED_EVENTS, build_execution
from pytest_ldos.trace.execution.build_windows import build_execution_in_windows
from pytest_ldos.trace.execution.model import ExecutionModel

EVENTS = (1_000_000, 10_000_000)
LARGEST_WHOLE = 20_000_000
"""Longer traces are read in windows only."""


def read_whole(trace: Path) -> ExecutionModel:
    return build_execution(read_trace(trace, events=NEEDED_EVENTS))


def read_in_windows(trace: Path) -> ExecutionModel:
    with open_in_windows(trace) as windows:
        return build_execution_in_windows(windows)


def measure_one(trace: Path, way: str) -> None:
    """Prints the cost of one reading."""
    before = anonymous_bytes()
    sampler = PeakSampler()
    sampler.start()
    cpu = time.process_time()
    model = read_in_windows(trace) if way == "windows" else read_whole(trace)
    cpu = time.process_time() - cpu
    print(json.dumps({"cpu_s": cpu, "peak": sampler.stop() - before, "events": model.stats.events}))


def measured(trace: Path, way: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.windows", "--one", str(trace), way]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        measure_one(Path(sys.argv[2]), sys.argv[3])
        return
    table = Table("", "CPU", "ns CPU an event", "peak anonymous memory", title="Windows", title_justify="left")
    for events in [int(float(each)) for each in sys.argv[1:]] or EVENTS:
        trace = generated_trace(events)
        for way in ("whole", "windows") if events <= LARGEST_WHOLE else ("windows",):
            cost = measured(trace, way)
            table.add_row(
                f"{cost['events']:,.0f} events, {'in windows' if way == 'windows' else 'whole'}",
                f"{cost['cpu_s']:.2f} s",
                f"{cost['cpu_s'] / cost['events'] * 1e9:.0f}",
                f"{cost['peak'] / 1e6:.0f} MB",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
