"""A trace of a ros2-like stack, written by the real tracer; made once, then kept in the build directory."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from pytest_ldos.record.lttng import LttngRecorder, lttng_available

ROOT = Path(__file__).parents[1]
SOURCE = Path(__file__).with_name("generator") / "ros2_stack.c"
PROVIDER = ROOT / "pytest_ldos/robot/dds/native"
BUILD = ROOT / "build/bench"

PROCESSES = ("move_group", "ros2_control", "perception")
THREADS = 2
EVENTS_IN_A_CYCLE = 11.25
EVENTS = 12_000_000


def generated_trace(events: int = EVENTS) -> Path:
    """The directory of a trace with at least `events` events, none lost."""
    trace = BUILD / f"trace_{events}"
    if not trace.exists():
        unfinished = trace.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        _record(unfinished, events)
        unfinished.rename(trace)
    return trace


def _record(directory: Path, events: int) -> None:
    lttng_available().demand()
    program = _build()
    cycles = int(events / EVENTS_IN_A_CYCLE / len(PROCESSES) / THREADS) + 4
    recorder = LttngRecorder(directory, BUILD, lossless=True)
    try:
        recorder.start()
        environment = {**os.environ, **recorder.environment}
        running = [
            subprocess.Popen([*recorder.prefix, str(program), name, str(THREADS), str(cycles)], env=environment)
            for name in PROCESSES
        ]
        codes = [process.wait() for process in running]
        report = recorder.pause()
    finally:
        recorder.stop()
    if any(codes) or report.discarded_events:
        raise SystemExit(f"the generator failed: exit codes {codes}, {report.discarded_events} events lost")


def _build() -> Path:
    program = BUILD / "ros2_stack"
    BUILD.mkdir(parents=True, exist_ok=True)
    flags = ["-O2", "-Wall", "-Wextra", "-Wno-unused-function", f"-I{PROVIDER}"]
    libraries = ["-llttng-ust", "-ldl", "-pthread"]
    subprocess.run(["gcc", *flags, str(SOURCE), "-o", str(program), *libraries], check=True)
    return program
