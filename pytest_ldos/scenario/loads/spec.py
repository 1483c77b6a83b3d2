"""Specs of loads, checked when they are created; floods and guards are in `flood`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from pytest_ldos.base.errors import require
from pytest_ldos.base.paths import PathSpec

Cpus = int | str
"""Selection of CPUs: a number N for the first N that this process may use, or a list such as ``0,2-3``."""

_CPU_LIST: Final = re.compile(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*", re.ASCII)


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

    def check(self, paths: Sequence[PathSpec]) -> None:
        """Checks the load against the known causal paths.

        Raises:
            ConfigurationError: it contradicts them.
        """


def one_a_cpu() -> int:
    """The number of CPUs."""
    return os.cpu_count() or 1


def require_workers(count: int) -> None:
    require(1 <= count <= 1024, f"a load of {count} workers; between 1 and 1024 are possible")


def require_size(size_mb: int) -> None:
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
        require_workers(self.workers)
        require_size(self.size_mb)


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
        require_workers(self.workers)
        require_size(self.size_mb)


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


class NeighbourStack(StrEnum):
    """Kind of the second stack."""

    EMBEDDED = "embedded"
    ROS2 = "ros2"
    """A second instance of the launch file under test."""


@dataclass(frozen=True, kw_only=True)
class NoisyNeighbourSpec(LoadSpec):
    """A second stack on its own DDS domain, whose arm moves continuously.

    Attributes:
        stack: the embedded stack, or a second instance of the launch file under test.
        group: as of `cpu_load`.
    """

    KIND: ClassVar[str] = "noisy_neighbour"

    stack: NeighbourStack = NeighbourStack.EMBEDDED
    group: SchedulerGroup = SchedulerGroup.STACK
