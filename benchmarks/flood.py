"""Compares the accuracy and the limit of the rate of a flood with a peer.

    make bench
    python -m benchmarks.flood --seconds 10 --repeats 5

The publishers are pinned to one CPU and the counter to another. Times are only worth something on a quiet machine:
each run waits for one, and says what others used of the CPUs while it lasted.

The peer is `ddsperf` (Debian: cyclonedds-tools), Cyclone DDS's own benchmark in C: it packs several
messages into a datagram and numbers them in place, emits no tracepoints, and knows no schedule.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from pytest_ldos.measure.load.dds_flood import FloodProof, run_dds_flood
from pytest_ldos.measure.load.protocol import LoadSite
from pytest_ldos.robot.dds.domain import claim_domain, loopback_config
from pytest_ldos.scenario.loads import DdsFloodSpec, Reliability
from tests.fakes.rig import FakeRecorder

SHARE_TARGET = 0.999
P99_TARGET_US = 200
SIZES = (64, 1024, 16 * 1024, 64 * 1024)
UNREACHABLE_HZ = 1_000_000
QUIET_SHARE = 0.1
QUIET_PATIENCE_S = 120.0
SUB_LINE = re.compile(r"size \d+ total \d+ lost \d+ delta (\d+) lost (\d+)")

console = Console(width=130)


@dataclass(frozen=True)
class Measured:
    """A flood and what else ran.

    Attributes:
        share_sent: of the messages that were due, by the publishers' own count.
        cpu_us: that a message cost its publisher, in the kernel too; others on the CPU hardly change it.
        others: CPUs that other processes used.
    """

    proof: FloodProof
    share_sent: float
    cpu_us: float
    others: float


def busy_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)


def used_by_children(name: str = "") -> float:
    """CPU seconds of our children, or of those of a name; they are asked while they run."""
    children = [child for child in psutil.Process().children(recursive=True) if name in child.name()]
    return float(sum(times.user + times.system for times in (child.cpu_times() for child in children)))


def await_quiet() -> float:
    """Waits for a second in which little runs; returns the CPUs that were used in it."""
    deadline = time.monotonic() + QUIET_PATIENCE_S
    while True:
        before = busy_seconds()
        time.sleep(1.0)
        used = busy_seconds() - before
        if used < QUIET_SHARE * (os.cpu_count() or 1) or time.monotonic() > deadline:
            return used


def pin(process: psutil.Process, cpu: int, *, fifo: bool) -> None:
    for thread in process.threads():
        os.sched_setaffinity(thread.id, {cpu})
        if fifo:
            os.sched_setscheduler(thread.id, os.SCHED_FIFO, os.sched_param(1))


@contextmanager
def site() -> Iterator[LoadSite]:
    with claim_domain() as domain, tempfile.TemporaryDirectory() as folder:
        yield LoadSite(domain=domain, recorder=FakeRecorder(Path(folder) / "trace"), log_directory=Path(folder))


def measure(spec: DdsFloodSpec, seconds: float, *, fifo: bool = False) -> Measured:
    """A pinned flood of so many seconds.

    Args:
        fifo: its processes come before all others (SCHED_FIFO): an idle CPU where none is to be had.
    """
    first, *_, last = sorted(os.sched_getaffinity(0))
    with ExitStack() as resources:
        flood = resources.enter_context(run_dds_flood(spec, resources.enter_context(site())))
        for child in psutil.Process().children(recursive=True):
            pin(child, first if child.name() == "flood_counter" else last, fifo=fifo)
        time.sleep(0.5)  # what was late while they were moved is not measured
        flood.await_begin()
        busy, ours, sending = busy_seconds(), used_by_children(), used_by_children("flood_publisher")
        time.sleep(seconds)
        sending = used_by_children("flood_publisher") - sending
        others = (busy_seconds() - busy - (used_by_children() - ours)) / seconds
        proof = flood.proof
    cpu_us = 1e6 * sending / (proof.rate_hz * seconds)
    return Measured(proof, min(1.0, proof.rate_hz / spec.total_hz), cpu_us, max(0.0, others))


def show_accuracy(seconds: float, repeats: int, *, fifo: bool) -> None:
    heads = ("sent", "p50 µs", "p99 µs", "max µs", "given up", "lost", "CPUs others used", "on target")
    title = f"Requested 4000 msg/s of 1 KiB, {seconds:g} s each: share sent and inter-send error"
    title += ", with SCHED_FIFO" if fifo else ""
    table = Table("", *heads, title=title, title_justify="left")
    for publishers, rate_hz in ((1, 4000), (4, 1000)):
        for _ in range(repeats):
            if not fifo:
                await_quiet()
            found = measure(DdsFloodSpec(publishers=publishers, rate_hz=rate_hz), seconds, fifo=fifo)
            proof = found.proof
            table.add_row(
                f"{publishers} × {rate_hz} Hz",
                f"{100 * found.share_sent:.3f} %",
                f"{proof.error_p50_us:.1f}",
                f"{proof.error_p99_us:.1f}",
                f"{proof.error_max_us:.0f}",
                str(proof.given_up),
                str(proof.lost),
                f"{found.others:.2f}",
                "yes" if found.share_sent >= SHARE_TARGET and proof.error_p99_us <= P99_TARGET_US else "no",
            )
    console.print(table)


@dataclass(frozen=True)
class Peer:
    """Counts of a subscriber of `ddsperf`: messages sent per second, and their publisher's CPU time."""

    sent_hz: float
    cpu_us: float


def measure_ddsperf(size: int, reliability: Reliability, seconds: float) -> Peer:
    """Publisher and subscriber, pinned as ours; the first second, in which they find each other, is left out."""
    first, *_, last = sorted(os.sched_getaffinity(0))
    with claim_domain() as domain:
        environment = {**os.environ, "CYCLONEDDS_URI": loopback_config()}
        words = [
            "-i",
            str(domain),
            "-D",
            f"{seconds + 2:.0f}",
            *(["-u"] if reliability == Reliability.BEST_EFFORT else []),
        ]
        pub = ["taskset", "-c", str(last), "ddsperf", *words, "-k", "1", "pub", "size", str(size)]
        sub = ["taskset", "-c", str(first), "ddsperf", *words, "-k", "4096", "-1", "sub"]
        subscriber = subprocess.Popen(
            sub, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        publisher = subprocess.Popen(pub, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        printed, _ = subscriber.communicate()
        _, publisher.returncode, used = os.wait4(publisher.pid, 0)
    seen = [sum(map(int, match.groups())) for match in SUB_LINE.finditer(printed)]
    steady = seen[1:-1]
    return Peer(sum(steady) / len(steady), 1e6 * (used.ru_utime + used.ru_stime) / sum(seen))


def show_ceiling(seconds: float) -> None:
    """Highest rate of one publisher, with a request of 1 000 000 Hz."""
    has_peer = shutil.which("ddsperf") is not None and shutil.which("taskset") is not None
    heads = ("msg/s", "MB/s", "CPU µs/msg", "received", "ddsperf msg/s", "its CPU µs/msg", "ours / its", "others' CPUs")
    title = f"Ceiling of one publisher, {seconds:g} s each"
    table = Table("size", "reliability", *heads, title=title, title_justify="left")
    for reliability in Reliability:
        for size in SIZES:
            await_quiet()
            spec = DdsFloodSpec(publishers=1, rate_hz=UNREACHABLE_HZ, size_bytes=size, reliability=reliability)
            found = measure(spec, seconds)
            peer = measure_ddsperf(size, reliability, seconds) if has_peer else None
            table.add_row(f"{size:,} B", reliability.value, *ceiling_cells(found, peer), f"{found.others:.2f}")
    console.print(table)
    if not has_peer:
        console.print("The peer was not measured: ddsperf not found (sudo apt-get install cyclonedds-tools).")


def ceiling_cells(found: Measured, peer: Peer | None) -> Iterator[str]:
    proof = found.proof
    yield f"{proof.rate_hz:,.0f}"
    yield f"{proof.sent_mb_s:,.0f}"
    yield f"{found.cpu_us:.1f}"
    yield f"{100 * (proof.received_share or 0):.0f} %"
    if peer is None:
        yield from ("–", "–", "–")
    else:
        yield f"{peer.sent_hz:,.0f}"
        yield f"{peer.cpu_us:.1f}"
        yield f"{proof.rate_hz / peer.sent_hz:.2f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement of the accuracy")
    parser.add_argument("--repeats", type=int, default=3, help="of each measurement of the accuracy")
    parser.add_argument(
        "--fifo", action="store_true", help="accuracy with SCHED_FIFO, for a machine that others use (needs permission)"
    )
    parser.add_argument("--no-ceiling", action="store_true", help="measure the accuracy alone")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    show_accuracy(options.seconds, options.repeats, fifo=options.fifo)
    if not options.no_ceiling:
        show_ceiling(options.seconds / 2)


if __name__ == "__main__":
    main()
