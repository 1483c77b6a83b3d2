"""Choice of the profiler."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.availability import Availability
from pytest_ldos.record.perf import PerfProfiler, perf_available
from pytest_ldos.record.profiler import Profiler
from pytest_ldos.record.py_spy import PySpyProfiler, py_spy_available
from pytest_ldos.scenario.words import ProfilerKind


def resolve_profiler(kind: ProfilerKind) -> ProfilerKind:
    """The profiler to use here: for `AUTO` perf if it is permitted, otherwise py-spy.

    Raises:
        Unavailable: it cannot be used here, or for `AUTO` none can; says why, and what to do.
    """
    wanted = list(_AVAILABLE) if kind is ProfilerKind.AUTO else [kind]
    absent: list[Availability] = []
    for each in wanted:
        able = _AVAILABLE[each]()
        if able.ok:
            return each
        absent.append(able)
    raise Unavailable("; ".join(each.reason for each in absent), remedy="; or ".join(each.remedy for each in absent))


def choose_profiler(kind: ProfilerKind, log_directory: Path, *, rate_hz: int) -> Profiler:
    """Makes a profiler of a kind that `resolve_profiler` returned."""
    if kind is ProfilerKind.PY_SPY:
        return PySpyProfiler(log_directory, rate_hz=rate_hz)
    return PerfProfiler(log_directory, rate_hz=rate_hz)


_AVAILABLE: Final = {ProfilerKind.PERF: perf_available, ProfilerKind.PY_SPY: py_spy_available}
