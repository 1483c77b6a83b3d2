"""Speed-up of reading many traces by two processes, on copies of recorded traces of real ROS 2.

    make bench
    python -m benchmarks.fleet --copies 24 --repeats 5

One and two workers of a local Dask cluster run the same tasks interleaved. Wall-clock times are only worth something where
two CPUs are idle. The ratio of CPU times is also given: the work of one worker over that of the busier of two,
which is the speed-up that two CPUs of their own would give. Start-up is measured separately.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tarfile
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from rich.console import Console
from rich.table import Table

from pytest_ldos.fleet.choose import connected_cluster
from pytest_ldos.fleet.tasks import run_tasks
from pytest_ldos.fleet.traces import Found, Request, TraceSummary, find_traces
from pytest_ldos.measure.metrics.model import USUAL

if TYPE_CHECKING:
    from distributed import Client

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
NAMES = ("discarded", "panda_baseline_1", "pipeline_multi_links")
REQUEST = Request(nominal_period_ns=2_000_000, interfaces=USUAL, usual=USUAL, threads=1)


@dataclass(frozen=True)
class Run:
    """Seconds of one reading of all traces.

    Attributes:
        start_s: until the workers were there and had imported what they need.
        wall_s: from the first task to the last summary.
        cpu_s: of all workers.
        busiest_s: of the worker that used most.
        others: CPUs that processes of others used meanwhile.
    """

    start_s: float
    wall_s: float
    cpu_s: float
    busiest_s: float
    others: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="fleet")
    parser.add_argument("--copies", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ldos-bench-fleet-") as folder:
        traces = copy_traces(Path(folder), arguments.copies)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        runs: dict[int, list[Run]] = {1: [], 2: []}
        found: dict[int, list[TraceSummary]] = {1: [], 2: []}
        for _ in range(arguments.repeats):
            found = {count: read(traces, count, runs[count]) for count in (1, 2)}
            assert found[1] == found[2], "one and two workers found different things"
    show(runs, f"{len(traces)} traces, {size / 1e6:.0f} MB, {sum(each.events for each in found[1])} events")


def copy_traces(folder: Path, copies: int) -> Sequence[Found]:
    for name in NAMES:
        with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
            archive.extractall(folder)
        for number in range(1, copies):
            shutil.copytree(folder / name, folder / f"{name}-{number}")
    return find_traces([folder])


def read(traces: Sequence[Found], workers: int, runs: list[Run]) -> list[TraceSummary]:
    began = time.perf_counter()
    with connected_cluster(workers) as client:
        list(run_tasks(client, [*traces[:1]] * workers, REQUEST))
        start_s = time.perf_counter() - began
        before, busy, began = cpu_seconds(client), busy_seconds(), time.perf_counter()
        found = sorted(run_tasks(client, traces, REQUEST), key=lambda each: each.trace)
        wall_s, after = time.perf_counter() - began, cpu_seconds(client)
    used = [after[worker] - before[worker] for worker in before]
    others = (busy_seconds() - busy - sum(used)) / wall_s
    runs.append(Run(start_s, wall_s, sum(used), max(used), max(others, 0.0)))
    return found


def cpu_seconds(client: Client) -> dict[str, float]:
    def used() -> float:
        times = psutil.Process().cpu_times()
        return float(times.user + times.system)

    answers: dict[str, float] = client.run(used)
    return answers


def busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)


def show(runs: dict[int, list[Run]], what: str) -> None:
    console = Console(width=130)
    console.print(f"{what}; {len(runs[1])} runs of each, interleaved")
    table = Table(
        "workers", "start-up s", "wall s (least)", "wall s (median)", "CPU s", "busiest CPU s", "others' CPUs"
    )
    for count, each in runs.items():
        numbers = (
            min(run.start_s for run in each),
            min(run.wall_s for run in each),
            statistics.median(run.wall_s for run in each),
            statistics.median(run.cpu_s for run in each),
            statistics.median(run.busiest_s for run in each),
            statistics.median(run.others for run in each),
        )
        table.add_row(str(count), *(f"{number:.2f}" for number in numbers))
    console.print(table)
    walls = [one.wall_s / two.wall_s for one, two in zip(runs[1], runs[2], strict=True)]
    bound = statistics.median(run.cpu_s for run in runs[1]) / statistics.median(run.busiest_s for run in runs[2])
    least = min(run.wall_s for run in runs[1]) / min(run.wall_s for run in runs[2])
    spread = ", ".join(f"{ratio:.2f}" for ratio in sorted(walls))
    console.print(f"speed-up by the wall clock: {least:.2f} of the least times; turn by turn {spread}")
    console.print(f"by CPU time, where each worker has a CPU to itself: {bound:.2f}")


if __name__ == "__main__":
    main()
