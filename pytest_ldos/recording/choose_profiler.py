"""Which profiler to use."""

from __future__ import annotations

from pathlib import Path

from pytest_ldos.errors import Unavailable
from pytest_ldos.host.availability import Availability
from pytest_ldos.recording.perf import PerfProfiler, perf_available
from pytest_ldos.recording.profiler import Profiler
from pytest_ldos.recording.py_spy import PySpyProfiler, py_spy_available
from pytest_ldos.scenario.watching import ProfilerKind


def profiling_available(kind: ProfilerKind) -> Availability:
    """Whether that can sample here; `AUTO` is one of all that can."""
    if kind is ProfilerKind.PERF:
        return perf_available()
    if kind is ProfilerKind.PY_SPY:
        return py_spy_available()
    both = (perf_available(), py_spy_available())
    if any(each.ok for each in both):
        return Availability(True)
    return Availability(False, "; ".join(each.reason for each in both), "; or ".join(each.remedy for each in both))


def choose_profiler(kind: ProfilerKind, log_directory: Path, *, rate_hz: int) -> Profiler:
    """`AUTO` is perf where that is permitted, else py-spy.

    Raises:
        Unavailable: none can sample here; says why, and what to do.
    """
    able = profiling_available(kind)
    if not able.ok:
        raise Unavailable(f"cannot profile: {able.reason}", remedy=able.remedy)
    if kind is ProfilerKind.PERF or (kind is ProfilerKind.AUTO and perf_available().ok):
        return PerfProfiler(log_directory, rate_hz=rate_hz)
    return PySpyProfiler(log_directory, rate_hz=rate_hz)
