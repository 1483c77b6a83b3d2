"""What one exchange used: as its process says, checked against what the kernel counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import psutil

from pytest_ldos.host.cpu_time import process_cpu_ns
from pytest_ldos.host.hardware_counters import Counters, Event
from pytest_ldos.host.processes import Child
from pytest_ldos.middleware.answering import AnsweringChild, ChildFailed, whole
from pytest_ldos.units import NS_PER_MS

CLOCK_SLACK_NS: Final = 10 * NS_PER_MS
"""Two of the kernel's counts may differ by a tick."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Messages, and what all threads of the process used for them.

    Attributes:
        published, received: messages; each is received by several.
        user_ns, system_ns: CPU time, of which user and system are told apart by ticks, and only the sum is exact.
        voluntary, involuntary: context switches.
        cycles: of the CPU; ``None`` where they cannot be counted.
    """

    ticks: int
    published: int
    received: int
    wall_ns: int
    user_ns: int
    system_ns: int
    voluntary: int
    involuntary: int
    cycles: int | None = None

    @property
    def cpu_ns(self) -> int:
        return self.user_ns + self.system_ns

    @property
    def switches(self) -> int:
        return self.voluntary + self.involuntary

    @classmethod
    def of(cls, answer: Mapping[str, Any], *, cycles: int | None) -> Exchange:
        """Of what a process says.

        Raises:
            ChildFailed: it makes no sense.
        """
        return cls(
            ticks=whole(answer, "ticks"),
            published=whole(answer, "published"),
            received=whole(answer, "received"),
            wall_ns=whole(answer, "wall_ns"),
            user_ns=whole(answer, "user_ns"),
            system_ns=whole(answer, "system_ns"),
            voluntary=whole(answer, "voluntary"),
            involuntary=whole(answer, "involuntary"),
            cycles=cycles,
        )


def make_exchange(child: AnsweringChild, *, limit_s: float) -> Exchange:
    """Has a process exchange its messages once.

    Raises:
        ChildFailed: it ended, was silent, or claims what the kernel has not seen.
    """
    pid = child.child.pid
    before_ns = _cpu_ns(child.child)
    counters = Counters(Event.CPU_CYCLES, _threads_of(pid))
    try:
        counted = counters.read()
        answer = child.ask("exchange", limit_s=limit_s)
        cycles = None if counted is None else (counters.read() or 0) - counted
    finally:
        counters.close()
    exchange = Exchange.of(answer, cycles=cycles)
    seen_ns = _cpu_ns(child.child) - before_ns
    if exchange.cpu_ns > seen_ns + CLOCK_SLACK_NS:
        used, seen = exchange.cpu_ns / NS_PER_MS, seen_ns / NS_PER_MS
        raise ChildFailed(
            f"{child.child.name} says that it used {used:.1f} ms of CPU, the kernel counted {seen:.1f} ms"
        )
    return exchange


def why_no_cycles(pid: int) -> str:
    """Why cycles of a process cannot be counted; empty where they can."""
    counters = Counters(Event.CPU_CYCLES, [pid])
    counters.close()
    return counters.reason


def _cpu_ns(child: Child) -> int:
    try:
        return process_cpu_ns(child.pid)
    except OSError:
        raise ChildFailed(child.describe_end(), details=child.last_lines()) from None


def _threads_of(pid: int) -> list[int]:
    try:
        return [thread.id for thread in psutil.Process(pid).threads()]
    except psutil.NoSuchProcess:
        return [pid]
