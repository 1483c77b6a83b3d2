"""Specs of loads, checked when they are created, and their registry."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from pytest_ldos.base.errors import require
from pytest_ldos.scenario.words import LOADS

Cpus = int | str
"""Selection of CPUs: a number N for the first N that this process may use, or a list such as ``0,2-3``."""

CPU_LIST: Final = r"\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*"
_CPU_LIST: Final = re.compile(CPU_LIST, re.ASCII)


class SchedulerGroup(StrEnum):
    """Processes that a load's processes compete with.

    Where the kernel groups processes by session (``sched_autogroup``), each session gets an equal share
    of the CPUs, however many processes it has.
    """

    STACK = "stack"
    """The stack's own session: each process of the load competes with each process of the stack."""

    OWN = "own"
    """A session of its own: the whole load has the same weight as the whole stack."""


class Proven(NamedTuple):
    """Keys of a load's proof for one field of the load: the amount reached, and the amount requested."""

    reached: str
    asked: str


@dataclass(frozen=True, kw_only=True)
class LoadSpec:
    """A load as data, checked when it is created; the wing `measure` applies it.

    Attributes:
        KIND: its name in settings, records and fixtures.
        PROVEN: keys of its proof by field, for fields that may be reached in part.
        LESS_IS_HARSHER: fields for which a smaller value disturbs more.
    """

    KIND: ClassVar[str]
    PROVEN: ClassVar[Mapping[str, Proven]] = {}
    LESS_IS_HARSHER: ClassVar[frozenset[str]] = frozenset()


def one_a_cpu() -> int:
    """The number of CPUs."""
    return os.cpu_count() or 1


def require_workers(count: int, size_mb: int = 1) -> None:
    require(1 <= count <= 1024, f"a load of {count} workers; between 1 and 1024 are possible")
    require(1 <= size_mb <= 1_000_000, f"a load of {size_mb} MB a worker; between 1 and 1 000 000 are possible")


def require_cpus(cpus: Cpus, name: str, *, least: int) -> None:
    if isinstance(cpus, str):
        remedy = f'{name} is a number of CPUs, or names them as "0,2-3"'
        require(_CPU_LIST.fullmatch(cpus) is not None, f"{name} is {cpus!r}", remedy=remedy)
    else:
        require(least <= cpus < math.inf, f"{name} is {cpus}, at least {least} is possible")


@dataclass(frozen=True, kw_only=True)
class CpuLimitSpec(LoadSpec):
    """Limits the CPUs that the stack may use.

    Attributes:
        cpus: CPUs on which all its threads run.
        quota_percent: quota for all its processes together (cgroup), in percent of one CPU; ``0`` for none.
    """

    KIND: ClassVar[str] = "cpu_limit"
    LESS_IS_HARSHER: ClassVar[frozenset[str]] = frozenset({"cpus", "quota_percent"})

    cpus: Cpus = 1
    quota_percent: float = 0.0

    def __post_init__(self) -> None:
        require_cpus(self.cpus, "cpus", least=1)
        require(
            self.quota_percent == 0 or 1 <= self.quota_percent <= 102_400,
            f"a quota of {self.quota_percent:g} % of a CPU; between 1 and 102400 are possible, and 0 for none",
        )


@dataclass(frozen=True, kw_only=True)
class CpuLoadSpec(LoadSpec):
    """stress-ng's CPU stressor.

    Attributes:
        workers: processes; by default one per CPU.
        percent: CPU use of each worker.
        method: stress-ng's ``--cpu-method``.
        reserved: CPUs left to the stack; ``0`` for none.
        group: competitors of the workers: the stack's individual processes, or the stack as a whole.
    """

    KIND: ClassVar[str] = "cpu_load"
    LESS_IS_HARSHER: ClassVar[frozenset[str]] = frozenset({"reserved"})

    workers: int = field(default_factory=one_a_cpu)
    percent: int = 80
    method: str = "matrixprod"
    reserved: Cpus = 0
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        require_workers(self.workers)
        require(1 <= self.percent <= 100, f"a CPU load of {self.percent} %; between 1 and 100 are possible")
        require_cpus(self.reserved, "reserved", least=0)


@dataclass(frozen=True, kw_only=True)
class MemoryLoadSpec(LoadSpec):
    """stress-ng's workers that write and read memory.

    Attributes:
        workers: processes.
        size_mb: of each worker, in units of 10^6 bytes.
        group: as of `cpu_load`.
    """

    KIND: ClassVar[str] = "memory_load"

    workers: int = 1
    size_mb: int = 256
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        require_workers(self.workers, self.size_mb)


@dataclass(frozen=True, kw_only=True)
class CacheLoadSpec(LoadSpec):
    """stress-ng's workers that evict other processes' data from the CPU caches.

    Attributes:
        workers: processes; by default one per CPU.
        group: as of `cpu_load`.
    """

    KIND: ClassVar[str] = "cache_load"

    workers: int = field(default_factory=one_a_cpu)
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        require_workers(self.workers)


@dataclass(frozen=True, kw_only=True)
class IoLoadSpec(LoadSpec):
    """stress-ng's workers that write files and sync them.

    Attributes:
        workers: processes.
        size_mb: of each worker's file, in units of 10^6 bytes.
        group: as of `cpu_load`.
    """

    KIND: ClassVar[str] = "io_load"

    workers: int = 1
    size_mb: int = 64
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        require_workers(self.workers, self.size_mb)


@dataclass(frozen=True, kw_only=True)
class NetworkImpairmentSpec(LoadSpec):
    """Impairs messages of the stack's DDS domain on the network (``tc netem``).

    Attributes:
        delay_ms: delay of each datagram.
        jitter_ms: variation of the delay in either direction.
        loss_percent: share of lost datagrams.
        rate_mbps: rate limit in 10^6 bits per second; ``0`` for none.
    """

    KIND: ClassVar[str] = "network_impairment"
    LESS_IS_HARSHER: ClassVar[frozenset[str]] = frozenset({"rate_mbps"})

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss_percent: float = 0.0
    rate_mbps: float = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.delay_ms <= 10_000, "delay_ms must be between 0 and 10 000")
        require(0 <= self.jitter_ms <= self.delay_ms, "jitter_ms must be between 0 and delay_ms")
        require(0 <= self.loss_percent <= 100, "loss_percent must be between 0 and 100")
        require(self.rate_mbps == 0 or 0.01 <= self.rate_mbps <= 100_000, "rate_mbps must be between 0.01 and 100 000")


SEQUENCE_BYTES: Final = 16
"""Hexadecimal digits of the sequence number in each message of a flood."""


class Reliability(StrEnum):
    BEST_EFFORT = "best_effort"
    RELIABLE = "reliable"


class FloodDomain(StrEnum):
    SAME = "same"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class DdsFloodSpec(LoadSpec):
    """Publishers of `std_msgs/String` that send at a fixed rate, volatile, each on its own topic.

    Attributes:
        publishers: number of publishers.
        rate_hz: of each publisher.
        burst: messages sent at once; the mean rate is unchanged.
        size_bytes: length of the text.
        reliability: of publishers and readers.
        depth: of the publishers' history.
        participants: number of DDS participants (processes) for the publishers; ``0`` gives each its own.
        domain: the stack's, or another.
        readers: True for readers that take and count the messages; without readers, few messages leave the publisher.
        group: as for `cpu_load`; with ``own``, each participant has its own session.
    """

    KIND: ClassVar[str] = "dds_flood"
    PROVEN: ClassVar[Mapping[str, Proven]] = {"rate_hz": Proven("rate_hz", "requested_hz")}

    publishers: int = 4
    rate_hz: float = 1000.0
    burst: int = 1
    size_bytes: int = 1024
    reliability: Reliability = Reliability.BEST_EFFORT
    depth: int = 1
    participants: int = 0
    domain: FloodDomain = FloodDomain.SAME
    readers: bool = True
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        require(1 <= self.publishers <= 32, f"a flood of {self.publishers} publishers; between 1 and 32 are possible")
        require(
            0.01 <= self.rate_hz <= 1e6,
            f"a flood at {self.rate_hz:g} Hz a publisher; between 0.01 and 1 000 000 Hz can be asked",
        )
        require(1 <= self.burst <= 10_000, f"bursts of {self.burst} messages; between 1 and 10 000 are possible")
        require(
            SEQUENCE_BYTES <= self.size_bytes <= 1 << 20,
            f"flood messages of {self.size_bytes} bytes; between {SEQUENCE_BYTES} (a message's number) "
            f"and 1048576 (1 MiB) are possible",
        )
        require(1 <= self.depth <= 100_000, f"a history of {self.depth} messages; between 1 and 100 000 are possible")
        require(
            0 <= self.participants <= self.publishers,
            f"{self.participants} participants for {self.publishers} publishers",
            remedy="at most one each; 0 gives each its own",
        )

    @property
    def total_hz(self) -> float:
        """Messages per second of all publishers together."""
        return self.publishers * self.rate_hz

    @property
    def processes(self) -> int:
        return self.participants or self.publishers


LOAD_SPECS: Final[dict[str, type[LoadSpec]]] = {
    each.KIND: each for each in sorted(LoadSpec.__subclasses__(), key=lambda spec: [*LOADS].index(spec.KIND))
}
"""The specs of this module by kind of load, in the order of `LOADS`."""
