"""CPU use of one exchange: reported by its process, checked against the kernel's counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psutil

from pytest_ldos.base.units import NS_PER_MS
from pytest_ldos.host.answering import AnsweringChild, ChildFailed, whole
from pytest_ldos.host.cpu_time import process_cpu_ns
from pytest_ldos.host.hardware_counters import Counters, Event
from pytest_ldos.host.processes import Child

CLOCK_SLACK_NS: Final = 10 * NS_PER_MS
"""Two counts of the kernel may differ by one tick."""


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """Messages, and the CPU use of all threads of the process for them.

    Attributes:
        published, received: messages; each published message is received by several subscribers.
        user_ns, system_ns: CPU time; the sum is exact, its split into user and system is sampled by ticks.
        voluntary, involuntary: context switches.
        cycles: CPU cycles; ``None`` where they cannot be counted.
        migrations: moves of threads to another CPU; ``None`` where they cannot be counted.
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
    migrations: int | None = None

    @property
    def cpu_ns(self) -> int:
        return self.user_ns + self.system_ns

    @property
    def switches(self) -> int:
        return self.voluntary + self.involuntary

    @classmethod
    def of(cls, answer: Mapping[str, Any], *, cycles: int | None = None, migrations: int | None = None) -> Exchange:
        """Builds the exchange from a process's answer.

        Raises:
            ChildFailed: the answer makes no sense.
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
            migrations=migrations,
        )


def make_exchange(child: AnsweringChild, *, limit_s: float) -> Exchange:
    """Asks a process to exchange its messages once.

    Raises:
        ChildFailed: it ended, did not answer, or reports more CPU time than the kernel counted.
    """
    pid = child.child.pid
    before_ns = _cpu_ns(child.child)
    with _counted(Event.CPU_CYCLES, pid) as cycles, _counted(Event.CPU_MIGRATIONS, pid) as migrations:
        answer = child.ask("exchange", limit_s=limit_s)
        exchange = Exchange.of(answer, cycles=cycles(), migrations=migrations())
    seen_ns = _cpu_ns(child.child) - before_ns
    if exchange.cpu_ns > seen_ns + CLOCK_SLACK_NS:
        used, seen = exchange.cpu_ns / NS_PER_MS, seen_ns / NS_PER_MS
        raise ChildFailed(
            f"{child.child.name} says that it used {used:.1f} ms of CPU, the kernel counted {seen:.1f} ms"
        )
    return exchange


@contextmanager
def _counted(event: Event, pid: int) -> Iterator[Callable[[], int | None]]:
    """Counts an event in all threads of a process, and in those that they start."""
    counters = Counters(event, _threads_of(pid))
    before = counters.read()
    try:
        yield lambda: None if before is None else (counters.read() or 0) - before
    finally:
        counters.close()


def why_not_counted(event: Event, pid: int) -> str:
    """Returns why an event of a process cannot be counted; empty if it can."""
    counters = Counters(event, [pid])
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
