"""Choice of the recorder and of the profiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.host.availability import Availability
from pytest_ldos.record.attach import AttachedRecorder, registered_processes
from pytest_ldos.record.lttng import LttngRecorder, lttng_available, lttng_version
from pytest_ldos.record.perf import SAMPLED, PerfProfiler, WithSwitches, perf_available, switches_available
from pytest_ldos.record.protocol import Profiler, Recorder
from pytest_ldos.record.py_spy import PySpyProfiler, py_spy_available
from pytest_ldos.scenario.words import ProfilerKind

recording_available: Final = lttng_available
recorder_name: Final = lttng_version


def choose_recorder(
    directory: Path,
    log_directory: Path,
    *,
    switches: bool = False,
    events: Sequence[str] = (),
    is_attached: bool = False,
) -> Recorder:
    """Returns a recorder, also of these `events`, and of context `switches` if permitted; raises `Unavailable`.

    If `is_attached`, it records the processes that run in this environment's DDS domain.
    """
    sampled = [each for each in events if each in SAMPLED]
    traced = [each for each in events if each not in sampled]
    if sampled:
        perf_available(*sampled).demand()
    recorder: Recorder
    if is_attached:
        recorder = AttachedRecorder(directory, log_directory, processes=registered_processes(), events=traced)
    else:
        recording_available().demand()
        recorder = LttngRecorder(directory, log_directory, events=traced)
    is_more = sampled or (switches and switches_available().ok)
    return WithSwitches(recorder, log_directory, sampled=sampled) if is_more else recorder


def resolve_profiler(kind: ProfilerKind) -> ProfilerKind:
    """Resolves `AUTO`, and `BOTH` without one of them, to perf if permitted, else to py-spy; raises `Unavailable`."""
    if kind is ProfilerKind.BOTH and all(available().ok for available in _AVAILABLE.values()):
        return kind
    wanted = [kind] if kind in _AVAILABLE else list(_AVAILABLE)
    absent: list[Availability] = []
    for each in wanted:
        able = _AVAILABLE[each]()
        if able.ok:
            return each
        absent.append(able)
    raise Unavailable("; ".join(each.reason for each in absent), remedy="; or ".join(each.remedy for each in absent))


def divide_processes(kind: ProfilerKind, processes: Mapping[int, str]) -> Mapping[ProfilerKind, Mapping[int, str]]:
    """Processes by profiler; with `BOTH`, py-spy samples those of Python, perf all others."""
    divided: dict[ProfilerKind, dict[int, str]] = {}
    for pid, name in processes.items():
        is_python = Path(f"/proc/{pid}/exe").resolve().name.startswith("python")  # "exe" if it has ended
        of_both = ProfilerKind.PY_SPY if is_python else ProfilerKind.PERF
        divided.setdefault(of_both if kind is ProfilerKind.BOTH else kind, {})[pid] = name
    return divided


def choose_profiler(kind: ProfilerKind, log_directory: Path, *, rate_hz: int) -> Profiler:
    """Creates a profiler of a kind returned by `divide_processes`."""
    if kind is ProfilerKind.PY_SPY:
        return PySpyProfiler(log_directory, rate_hz=rate_hz)
    return PerfProfiler(log_directory, rate_hz=rate_hz)


_AVAILABLE: Final = {ProfilerKind.PERF: perf_available, ProfilerKind.PY_SPY: py_spy_available}
