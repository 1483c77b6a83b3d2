"""Compares the overhead and the sustained rate of our measurement of DDS latency with a peer.

    make bench
    python -m benchmarks.latency --seconds 2 --rounds 9

The peer is `ddsperf` (Debian: cyclonedds-tools), Cyclone DDS's own benchmark in C. Ours runs over the very library
that it is linked with, interleaved with it, both pinned alike where they are two processes: what is left of a difference is the programs' own.
Times are only worth something on a quiet machine. Without ddsperf, only our rate is reported.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.text import visible
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.instruments.latency.instrument import measure
from pytest_ldos.instruments.latency.spec import NO_CPU, LatencySpec, Program, Transport, Trigger
from pytest_ldos.instruments.study import Study
from tests.fakes.progress import Silence

SIZES = "1,64KiB"
OURS = {Program.CYCLONE, Program.TWIN}
ADDED_TARGET = 0.10

console = Console(width=130)


def measure_beside(transport: Transport, trigger: Trigger, options: argparse.Namespace) -> Study:
    """In one process nothing is pinned: ddsperf's threads cannot be distinguished."""
    cpus = sorted(os.sched_getaffinity(0))
    is_pinned = transport is not Transport.ONE_PROCESS
    spec = LatencySpec(
        sizes=SIZES,
        transports=transport.value,
        trigger=trigger,
        seconds=options.seconds,
        rounds=options.rounds,
        ping_cpu=cpus[-1] if is_pinned else NO_CPU,
        pong_cpu=cpus[0] if is_pinned else NO_CPU,
        priority=1 if options.fifo else 0,
        ros=False,
    )
    return measure(spec, Silence())


def rows_of(study: Study, name: str) -> list[dict[str, object]]:
    """A table of a study; empty where it has none of the name."""
    found = next((table for table in study.tables if table.name == name), None)
    if found is None:
        return []
    names = [column.name for column in found.columns]
    return [dict(zip(names, row, strict=True)) for row in found.rows]


def rates_of(study: Study) -> dict[tuple[object, object, object], float]:
    """Round trips a second by transport, size and program."""
    return {
        (transport, row["size"], row["program"]): float(str(row["rate"]))
        for transport in Transport
        for row in rows_of(study, f"round_trips_{transport}")
        if row["rate"] is not None
    }


@dataclass(frozen=True)
class Limits:
    """Summary of the latency tool.

    Attributes:
        added: to ddsperf's median over the same library, as a share with its interval; in each setup.
        rate: round trips a second, at most, and where.
    """

    added: tuple[tuple[float, float | None, float | None, str], ...]
    rate: tuple[float, str]


def limits_of(study: Study, title: str) -> Limits:
    """Figures of one study."""
    added = tuple(
        (float(str(row["ratio"])) - 1, *_shares(row), f"{row['size']:,} B, {title}")
        for row in rows_of(study, "beside_ddsperf")
        if row["program"] == Program.TWIN
    )
    ours = [(rate, f"{size:,} B, {title}") for (_, size, program), rate in rates_of(study).items() if program in OURS]
    return Limits(added, max(ours, default=(0.0, title)))


def _shares(row: dict[str, object]) -> tuple[float | None, float | None]:
    low, high = (None if row[name] is None else float(str(row[name])) - 1 for name in ("low", "high"))
    return low, high


def show_limits(found: list[Limits]) -> None:
    """The two numbers: what our tool adds where it adds most, and the highest rate that it sustains."""
    added = [each for limits in found for each in limits.added]
    if added:
        share, low, high, where = max(added, key=lambda each: each[0])
        interval = "" if low is None or high is None else f" ({100 * low:+.1f} … {100 * high:+.1f} %)"
        console.print(f"added to ddsperf's median, at most: {100 * share:+.1f} %{interval}, at {where}")
    rate, where = max(limits.rate for limits in found)
    console.print(f"highest rate sustained: {rate:,.0f} round trips/s, at {where}")


def show(study: Study, title: str) -> None:
    table = Table(
        "size", "our library", "our p50 µs", "ddsperf's", "added", "95 % interval", "our round trips/s",
        "ddsperf's", "on target",
        title=f"Added to ddsperf's latency, {title}", title_justify="left",
    )  # fmt: skip
    rates = rates_of(study)
    for row in rows_of(study, "beside_ddsperf"):
        place = (row["transport"], row["size"])
        low, high = row["low"], row["high"]
        ratio = float(str(row["ratio"]))
        is_twin = row["program"] == Program.TWIN
        table.add_row(
            f"{row['size']:,} B",
            "ddsperf's" if is_twin else "the wheel's",
            f"{row['ours']:.1f}",
            f"{row['theirs']:.1f}",
            f"{100 * (ratio - 1):+.1f} %",
            "–"
            if low is None or high is None
            else f"{100 * (float(str(low)) - 1):+.1f} … {100 * (float(str(high)) - 1):+.1f} %",
            f"{rates[*place, row['program']]:,.0f}",
            f"{rates[*place, 'ddsperf']:,.0f}",
            ("yes" if ratio <= 1 + ADDED_TARGET else "no") if is_twin else "",
        )
    if table.row_count:
        console.print(table)
    for note in study.notes:
        console.print(note, markup=False)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each round")
    parser.add_argument("--rounds", type=int, default=5, help="of each program and size")
    parser.add_argument(
        "--fifo", action="store_true", help="with SCHED_FIFO, for a machine that others use (needs permission)"
    )
    return parser.parse_args()


def main() -> None:
    options = arguments()
    found = []
    with measuring_lock():
        for transport, trigger in (
            (Transport.ONE_PROCESS, Trigger.WAITSET),
            (Transport.LOOPBACK, Trigger.LISTENER),
            (Transport.LOOPBACK, Trigger.WAITSET),
        ):
            title = f"{transport.replace('_', ' ')}, {trigger}"
            study = measure_beside(transport, trigger, options)
            show(study, title)
            found.append(limits_of(study, title))
    show_limits(found)


if __name__ == "__main__":
    try:
        main()
    except LdosError as error:
        sys.exit(visible(f"Latency was not measured: {error}"))
