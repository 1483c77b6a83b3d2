"""Resource usage of all processes of a topology together, over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_ldos.base.units import NS_PER_MS
from pytest_ldos.instruments.topology.recorded import Recorded, ResourceSample

MEMORY: Final = ("arena_kb", "in_use_kb", "mmap_kb", "rss_kb", "vsz_kb")


@dataclass(frozen=True, kw_only=True)
class Usage:
    """All processes at one moment; sizes in KiB, summed: memory shared by processes counts once for each.

    Attributes:
        time_ms: time since the first start began to send.
        cpu_percent: percentage of all cores, since this start began to send.
        cpu_now_percent: percentage since the previous moment; ``None`` for the first.
    """

    start: int
    time_ms: int
    cpu_percent: float
    cpu_now_percent: float | None
    arena_kb: int
    in_use_kb: int
    mmap_kb: int
    rss_kb: int
    vsz_kb: int


def find_usage(recorded: Recorded, *, start: int, origin_ns: int, cores: int) -> list[Usage]:
    """Returns the moments at which all processes sampled their usage; CPU time counts from the first."""
    if any(not samples for samples in recorded.resources.values()):
        return []
    moments = list(zip(*recorded.resources.values(), strict=False))
    found: list[Usage] = []
    for number, moment in enumerate(moments):
        before = moments[number - 1] if number else None
        found.append(
            Usage(
                start=start,
                time_ms=(max(each.mono_ns for each in moment) - origin_ns) // NS_PER_MS,
                cpu_percent=_cpu_percent(moments[0], moment, cores) if number else 0.0,
                cpu_now_percent=_cpu_percent(before, moment, cores) if before else None,
                **{name: sum(getattr(each, name) for each in moment) for name in MEMORY},
            )
        )
    return found


def _cpu_percent(before: Sequence[ResourceSample], now: Sequence[ResourceSample], cores: int) -> float:
    """Takes each process's own times, because the processes do not sample at the same instant."""
    shares = ((b.cpu_ns - a.cpu_ns) / max(1, b.mono_ns - a.mono_ns) for a, b in zip(before, now, strict=True))
    return 100 * sum(shares) / cores


def cpu_percent_between(
    resources: Mapping[str, Sequence[ResourceSample]], begin_ns: int, end_ns: int, cores: int
) -> float | None:
    """Percentage of all cores, CPU time interpolated linearly between samples; ``None`` without a sample at the end."""
    if not resources or any(len(samples) < 2 or samples[-1].mono_ns < end_ns for samples in resources.values()):
        return None
    used_ns = 0.0
    for samples in resources.values():
        times, used = [each.mono_ns for each in samples], [each.cpu_ns for each in samples]
        used_ns += float(np.interp(end_ns, times, used) - np.interp(begin_ns, times, used))
    return 100 * used_ns / (end_ns - begin_ns) / cores


def rss_between(resources: Mapping[str, Sequence[ResourceSample]], begin_ns: int, end_ns: int) -> float | None:
    """Resident memory of all processes in the middle of an interval, MB; ``None`` if a process never reported it."""
    if not resources or any(not samples for samples in resources.values()):
        return None
    middle = (begin_ns + end_ns) / 2
    kib = sum(
        float(np.interp(middle, [each.mono_ns for each in samples], [each.rss_kb for each in samples]))
        for samples in resources.values()
    )
    return kib * 1024 / 1e6
