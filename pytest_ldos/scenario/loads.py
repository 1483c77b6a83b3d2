"""Loads that disturb a stack: each load as data, checked when it is created.

The room `load` applies them.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final

from pytest_ldos.base.requirements import require

Cpus = int | str
"""Selection of CPUs: a number N for the first N that this process may use, or a list like ``0,2-3``."""

SEQUENCE_BYTES: Final = 16
"""Hexadecimal digits of the sequence number in each message of a flood."""

_TOPIC: Final = re.compile(r"(/[A-Za-z_][A-Za-z0-9_]*)+", re.ASCII)
_MESSAGE_TYPE: Final = re.compile(r"[a-z][a-z0-9_]*/msg/[A-Za-z][A-Za-z0-9]*", re.ASCII)
_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*", re.ASCII)
_LONGEST_MS: Final = 60_000

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


class Reliability(StrEnum):
    """ROS 2's term for retransmission of lost messages."""

    BEST_EFFORT = "best_effort"
    RELIABLE = "reliable"


class FloodDomain(StrEnum):
    """DDS domain of a flood."""

    SAME = "same"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class LoadSpec:
    """A load; each has a `KIND`, which names it in settings, records and fixtures."""

    KIND: ClassVar[str]


def _one_a_cpu() -> int:
    """The number of CPUs."""
    return os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True)
class CpuLoadSpec(LoadSpec):
    """stress-ng's CPU stressor.

    Attributes:
        workers: processes; one a CPU by default.
        percent: of a CPU, for each worker.
        method: one of stress-ng's (``--cpu-method``).
        reserved: CPUs that the workers leave to the stack; ``0`` for none.
        group: whom the workers compete with: the stack's processes one by one, or the stack as a whole.
    """

    KIND: ClassVar[str] = "cpu_load"

    workers: int = field(default_factory=_one_a_cpu)
    percent: int = 80
    method: str = "matrixprod"
    reserved: Cpus = 0
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        _require_workers(self.workers)
        require(1 <= self.percent <= 100, f"a CPU load of {self.percent} %; between 1 and 100 are possible")
        _require_cpus(self.reserved, "reserved", least=0)


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
        _require_workers(self.workers)
        _require_size(self.size_mb)


@dataclass(frozen=True, kw_only=True)
class CacheLoadSpec(LoadSpec):
    """stress-ng's workers that throw others' data out of the CPU's caches.

    Attributes:
        workers: processes; one a CPU by default.
        group: as of `cpu_load`.
    """

    KIND: ClassVar[str] = "cache_load"

    workers: int = field(default_factory=_one_a_cpu)
    group: SchedulerGroup = SchedulerGroup.STACK

    def __post_init__(self) -> None:
        _require_workers(self.workers)


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
        _require_workers(self.workers)
        _require_size(self.size_mb)


@dataclass(frozen=True, kw_only=True)
class DdsFloodSpec(LoadSpec):
    """Publishers of `std_msgs/String` that send at a fixed rate, volatile, each on a topic of its own.

    Attributes:
        publishers: how many.
        rate_hz: of each publisher.
        burst: messages that are sent at once; the rate stays the same.
        size_bytes: length of the text.
        reliability: of publishers and readers.
        depth: of the publishers' history.
        participants: over how many DDS participants (processes) the publishers are spread; ``0`` gives each its own.
        domain: the stack's, or another.
        readers: whether somebody takes what is sent, and counts it; without, little of it gets beyond its publisher.
        group: as of `cpu_load`; with ``own``, each participant has a session of its own.
    """

    KIND: ClassVar[str] = "dds_flood"

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
        """Number of participants that carry the publishers."""
        return self.participants or self.publishers


@dataclass(frozen=True, kw_only=True)
class NetworkImpairmentSpec(LoadSpec):
    """Impairs the messages of the stack's DDS domain on the network (``tc netem``).

    Attributes:
        delay_ms: by which each datagram is later.
        jitter_ms: by how much that varies, either way.
        loss_percent: of the datagrams.
        rate_mbps: to which they are throttled, in 10^6 bits a second; ``0`` for no limit.
    """

    KIND: ClassVar[str] = "network_impairment"

    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    loss_percent: float = 0.0
    rate_mbps: float = 0.0

    def __post_init__(self) -> None:
        require(0 <= self.delay_ms <= 10_000, "delay_ms must lie between 0 and 10 000")
        require(0 <= self.jitter_ms <= self.delay_ms, "jitter_ms must lie between 0 and delay_ms")
        require(0 <= self.loss_percent <= 100, "loss_percent must lie between 0 and 100")
        require(self.rate_mbps == 0 or 0.01 <= self.rate_mbps <= 100_000, "rate_mbps must lie between 0.01 and 100 000")


@dataclass(frozen=True, kw_only=True)
class CpuLimitSpec(LoadSpec):
    """Limits the CPUs that the stack may use.

    Attributes:
        cpus: on which all its threads run.
        quota_percent: of one CPU, for all its processes together (cgroup); ``0`` for no quota.
    """

    KIND: ClassVar[str] = "cpu_limit"

    cpus: Cpus = 1
    quota_percent: float = 0.0

    def __post_init__(self) -> None:
        _require_cpus(self.cpus, "cpus", least=1)
        require(
            self.quota_percent == 0 or 1 <= self.quota_percent <= 102_400,
            f"a quota of {self.quota_percent:g} % of a CPU; between 1 and 102400 are possible, and 0 for none",
        )


class NeighbourStack(StrEnum):
    """Kind of the second stack."""

    EMBEDDED = "embedded"
    ROS2 = "ros2"
    """A second instance of the launch file under test."""


@dataclass(frozen=True, kw_only=True)
class NoisyNeighbourSpec(LoadSpec):
    """A second stack on a DDS domain of its own, whose arm moves all the time.

    Attributes:
        stack: which: the embedded one, or the launch file of the stack under test once more.
        group: as of `cpu_load`.
    """

    KIND: ClassVar[str] = "noisy_neighbour"

    stack: NeighbourStack = NeighbourStack.EMBEDDED
    group: SchedulerGroup = SchedulerGroup.STACK


@dataclass(frozen=True, kw_only=True)
class GuardSpec(LoadSpec):
    """No load, but what holds others back: a node that watches how late a path is, and throttles publishers.

    In each window in which more than `late_share` of the messages were late, or nothing was heard for too long, the
    share of their rate that the publishers may use is multiplied by `decrease`; from `calm_windows` calm ones in a row
    on, each adds `increase` to it (additive increase, multiplicative decrease: Chiu and Jain 1989).

    Attributes:
        path: one that is declared or built in; messages of the topic at which it ends carry the time at which it began.
        topic: watched instead; then `deadline_ms` must be given.
        type: of the topic's messages; known of ``/tf`` and ``/joint_states``.
        deadline_ms: from when on a message is late; ``0`` for the path's own deadline.
        silence_ms: after so long without a message, each window is late.
        window_ms: after which the guard decides anew.
        late_share: of the messages of a window; above it, the window is late.
        least_share: below which nobody is throttled; with ``1`` the guard only watches.
        decrease: by which the share is multiplied in a late window.
        calm_windows: in a row, after which the share grows.
        increase: of the share, in each calm window from then on.
        publishers: names of nodes, with commas between them; empty for those of the flood beside it.
        parameter: of these nodes: the share of its own rate that each may use.
        group: as of `cpu_load`.
    """

    KIND: ClassVar[str] = "guard"

    path: str = "state feedback"
    topic: str = ""
    type: str = ""
    deadline_ms: float = 0.0
    silence_ms: float = 500.0
    window_ms: float = 100.0
    late_share: float = 0.1
    least_share: float = 0.01
    decrease: float = 0.5
    calm_windows: int = 10
    increase: float = 0.05
    publishers: str = ""
    parameter: str = "throttle"
    group: SchedulerGroup = SchedulerGroup.OWN

    def __post_init__(self) -> None:
        require(
            not self.topic or _TOPIC.fullmatch(self.topic) is not None,
            f"topic is {self.topic!r}",
            remedy="a topic's whole name begins with /",
        )
        require(
            not self.type or _MESSAGE_TYPE.fullmatch(self.type) is not None,
            f"type is {self.type!r}",
            remedy="write it as sensor_msgs/msg/JointState",
        )
        require(
            0 < self.deadline_ms <= _LONGEST_MS or (self.deadline_ms == 0 and not self.topic),
            f"a deadline of {self.deadline_ms:g} ms; above 0 and up to 60000 are possible",
            remedy="" if self.topic else "0 stands for the path's own deadline",
        )
        require(10 <= self.window_ms <= 10_000, f"windows of {self.window_ms:g} ms; between 10 and 10000 are possible")
        require(
            self.window_ms <= self.silence_ms <= _LONGEST_MS,
            f"silence_ms is {self.silence_ms:g}; between window_ms ({self.window_ms:g}) and 60000 are possible",
        )
        require(0 <= self.late_share < 1, "late_share must lie between 0 and 1, and below 1")
        require(0 < self.least_share <= 1, "least_share must lie above 0, and at most at 1")
        require(0 < self.decrease < 1, "decrease must lie between 0 and 1: the share is multiplied by it")
        require(1 <= self.calm_windows <= 10_000, "calm_windows must lie between 1 and 10 000")
        require(0 < self.increase <= 1, "increase must lie above 0, and at most at 1")
        for name in self.publisher_names:
            require(
                _TOPIC.fullmatch(name) is not None,
                f"{name!r} in publishers is no name of a node",
                remedy='write them as "/camera,/lidar"',
            )
        require(
            _PARAMETER.fullmatch(self.parameter) is not None,
            f"{self.parameter!r} is no name of a parameter",
            remedy='the publishers\' own, such as "throttle"',
        )

    @property
    def publisher_names(self) -> tuple[str, ...]:
        """Names in `publishers`, each once."""
        return tuple(dict.fromkeys(each.strip() for each in self.publishers.split(",") if each.strip()))


LOAD_SPECS: Final[Mapping[str, type[LoadSpec]]] = {
    spec.KIND: spec
    for spec in (
        CpuLimitSpec,
        NetworkImpairmentSpec,
        GuardSpec,
        NoisyNeighbourSpec,
        MemoryLoadSpec,
        CacheLoadSpec,
        IoLoadSpec,
        CpuLoadSpec,
        DdsFloodSpec,
    )
}
"""Every load by its kind, in the order in which several are applied: limits first, floods last.

A guard comes before the load that it guards against: it learns while the stack is calm.
"""


def _require_workers(count: int) -> None:
    require(1 <= count <= 1024, f"a load of {count} workers; between 1 and 1024 are possible")


def _require_size(size_mb: int) -> None:
    require(1 <= size_mb <= 1_000_000, f"a load of {size_mb} MB a worker; between 1 and 1 000 000 are possible")


def _require_cpus(cpus: Cpus, name: str, *, least: int) -> None:
    if isinstance(cpus, str):
        remedy = f'{name} is a number of CPUs, or names them as "0,2-3"'
        require(_CPU_LIST.fullmatch(cpus) is not None, f"{name} is {cpus!r}", remedy=remedy)
    else:
        require(least <= cpus < math.inf, f"{name} is {cpus}, at least {least} is possible")
