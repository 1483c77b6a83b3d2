"""Interference by other programs: what they and the machine took from a measurement, as facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from pytest_ldos.base.text import one_line

MOST_PROGRAMS: Final = 5
"""Programs that are kept of one span."""

NOTABLE_SHARE: Final = 0.1
"""Share of the machine's CPU time from which on others are reported, and trials are no longer alike."""

_NOTABLE_STALL: Final = 0.02
"""Share of a span from which on throttling and waits for memory are reported."""

_SHORTEST_S: Final = 0.5
"""Shortest span that is reported: the kernel counts CPU time in hundredths of a second."""

_MOST_NAMED: Final = 3


@dataclass(frozen=True, kw_only=True)
class Interference:
    """Interference during a span of time. A fact that this machine does not report is ``None``.

    Others are all processes but the measuring one and its descendants, and the kernel's own threads.

    Attributes:
        seconds: length of the span.
        cpus: CPUs of the machine.
        others_s: CPU time that others used.
        steal_s: CPU time that the hypervisor gave to others.
        throttled_s: time for which a quota stopped our own control group.
        thermal_throttles: number of times that a core slowed down for heat.
        memory_stall_s: time in which some process of the machine waited for memory.
        programs: CPU time [s] of the others that used most, by program.
    """

    seconds: float
    cpus: int
    others_s: float | None = None
    steal_s: float | None = None
    throttled_s: float | None = None
    thermal_throttles: int | None = None
    memory_stall_s: float | None = None
    programs: Mapping[str, float] = field(default_factory=dict)

    @property
    def others_share(self) -> float:
        """Share of the machine's CPU time that others and the hypervisor took; 0 where it is not known."""
        all_s = self.seconds * self.cpus
        return ((self.others_s or 0.0) + (self.steal_s or 0.0)) / all_s if all_s > 0 else 0.0

    @property
    def is_heavy(self) -> bool:
        """True if others took so much that what was measured is unlike the rest."""
        return self.seconds >= _SHORTEST_S and self.others_share >= NOTABLE_SHARE


def add_up(spans: Iterable[Interference]) -> Interference | None:
    """The interference of several spans together; ``None`` without any."""
    every = list(spans)
    if not every:
        return None
    programs: Counter[str] = Counter()
    for each in every:
        programs.update(each.programs)
    throttles = [each.thermal_throttles for each in every if each.thermal_throttles is not None]
    return Interference(
        seconds=sum(each.seconds for each in every),
        cpus=max(each.cpus for each in every),
        others_s=_sum(each.others_s for each in every),
        steal_s=_sum(each.steal_s for each in every),
        throttled_s=_sum(each.throttled_s for each in every),
        thermal_throttles=sum(throttles) if throttles else None,
        memory_stall_s=_sum(each.memory_stall_s for each in every),
        programs=dict(programs.most_common(MOST_PROGRAMS)),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def describe_interference(found: Interference | None) -> str:
    """``others used 1.6 of 2 CPUs: cargo, cc1plus``; empty if there was none to speak of."""
    return "" if found is None else "; ".join(_describe(found))


def describe_others(found: Interference) -> str:
    """``others used 0.1 of 2 CPUs: cargo``, however little that is; empty if it is not known."""
    if found.others_s is None or found.seconds <= 0:
        return ""
    named = [one_line(name) for name in islice(found.programs, _MOST_NAMED)]
    more = " …" if len(found.programs) > _MOST_NAMED else ""
    names = f": {', '.join(named)}{more}" if named else ""
    return f"others used {found.others_s / found.seconds:.1f} of {found.cpus} CPUs{names}"


def _describe(found: Interference) -> Iterator[str]:
    all_s = found.seconds * found.cpus
    if all_s <= 0 or found.seconds < _SHORTEST_S:
        return
    if (found.others_s or 0.0) / all_s >= NOTABLE_SHARE:
        yield describe_others(found)
    if (found.steal_s or 0.0) / all_s >= _NOTABLE_STALL:
        yield f"the hypervisor took {(found.steal_s or 0.0) / found.seconds:.1f} of {found.cpus} CPUs"
    if (found.throttled_s or 0.0) / found.seconds >= _NOTABLE_STALL:
        yield f"a quota of CPU time stopped our control group for {found.throttled_s:.1f} s of {found.seconds:.1f} s"
    if found.thermal_throttles:
        yield f"cores slowed down for heat {found.thermal_throttles} times"
    if (found.memory_stall_s or 0.0) / found.seconds >= _NOTABLE_STALL:
        yield f"programs waited for memory for {found.memory_stall_s:.1f} s of {found.seconds:.1f} s"
