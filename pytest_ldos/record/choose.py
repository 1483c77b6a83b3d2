"""Choice of the recorder and of the profiler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.availability import Availability
from pytest_ldos.record.lttng import LttngRecorder, lttng_available, lttng_version
from pytest_ldos.record.perf import PerfProfiler, WithSwitches, perf_available, switches_available
from pytest_ldos.record.protocol import Profiler, Recorder
from pytest_ldos.record.py_spy import PySpyProfiler, py_spy_available
from pytest_ldos.scenario.words import ProfilerKind

recording_available: Final = lttng_available
recorder_name: Final = lttng_version


def choose_recorder(
    directory: Path, log_directory: Path, *, switches: bool = False, events: Sequence[str] = ()
) -> Recorder:
    """Returns a recorder, also of these `events`, and of context `switches` if permitted; raises `Unavailable`."""
    recording_available().demand()
    recorder = LttngRecorder(directory, log_directory, events=events)
    return WithSwitches(recorder, log_directory) if switches and switches_available().ok else recorder


def resolve_profiler(kind: ProfilerKind) -> ProfilerKind:
    """Resolves `AUTO` to perf if it is permitted, else to py-spy; raises `Unavailable` if none can be used."""
    wanted = list(_AVAILABLE) if kind is ProfilerKind.AUTO else [kind]
    absent: list[Availability] = []
    for each in wanted:
        able = _AVAILABLE[each]()
        if able.ok:
            return each
        absent.append(able)
    raise Unavailable("; ".join(each.reason for each in absent), remedy="; or ".join(each.remedy for each in absent))


def choose_profiler(kind: ProfilerKind, log_directory: Path, *, rate_hz: int) -> Profiler:
    """Creates a profiler of a kind returned by `resolve_profiler`."""
    if kind is ProfilerKind.PY_SPY:
        return PySpyProfiler(log_directory, rate_hz=rate_hz)
    return PerfProfiler(log_directory, rate_hz=rate_hz)


_AVAILABLE: Final = {ProfilerKind.PERF: perf_available, ProfilerKind.PY_SPY: py_spy_available}
