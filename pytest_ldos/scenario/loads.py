"""Specs of loads, checked when they are created, and their registry."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown, require
from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.scenario.stimuli import GRAPH_NAME
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

    def check(self, paths: Sequence[PathSpec]) -> None:
        """Raises `ConfigurationError` if the load contradicts the known causal paths."""


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


class NeighbourStack(StrEnum):
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
    PROVEN: ClassVar[Mapping[str, Proven]] = {"rate_hz": Proven("rate_hz", "allowed_hz")}

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


KNOWN_TYPES: Final[Mapping[str, str]] = {"/tf": "tf2_msgs/msg/TFMessage", "/joint_states": "sensor_msgs/msg/JointState"}

_MESSAGE_TYPE: Final = re.compile(r"[a-z][a-z0-9_]*/msg/[A-Za-z][A-Za-z0-9]*", re.ASCII)
_PARAMETER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*", re.ASCII)
_LONGEST_MS: Final = 60_000


@dataclass(frozen=True, kw_only=True)
class GuardSpec(LoadSpec):
    """A guard, which limits loads: a node that watches the lateness of a path, and throttles publishers.

    After each window in which more than `late_share` of the messages were late, or no message came for too long, the
    share of their rate that publishers may use is multiplied by `decrease`. After `calm_windows` calm windows in a row,
    each further one adds `increase` (additive increase, multiplicative decrease: Chiu and Jain 1989).

    Attributes:
        path: declared or built-in path; messages of its last topic carry the time at which it began.
        topic: topic to watch instead; requires `deadline_ms`.
        type: message type of the topic; known for ``/tf`` and ``/joint_states``.
        deadline_ms: age at which a message is late; ``0`` for the path's own deadline.
        silence_ms: time without a message after which each window is late.
        window_ms: length of a window; the guard decides after each.
        late_share: share of late messages above which a window is late.
        least_share: least share that publishers keep; with ``1``, the guard only watches.
        decrease: factor of the share after a late window.
        calm_windows: number in a row after which the share grows.
        increase: increment of the share after each further calm window.
        publishers: names of nodes, separated by commas; empty for those of the flood in the same scenario.
        parameter: of these nodes, which is set to the share of its rate that each may use.
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
            not self.topic or GRAPH_NAME.fullmatch(self.topic) is not None,
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
        require(0 <= self.late_share < 1, "late_share must be at least 0 and below 1")
        require(0 < self.least_share <= 1, "least_share must be above 0 and at most 1")
        require(0 < self.decrease < 1, "decrease must be between 0 and 1: the share is multiplied by it")
        require(1 <= self.calm_windows <= 10_000, "calm_windows must be between 1 and 10 000")
        require(0 < self.increase <= 1, "increase must be above 0 and at most 1")
        for name in self.publisher_names:
            require(
                GRAPH_NAME.fullmatch(name) is not None,
                f"{name!r} in publishers is not the name of a node",
                remedy='write them as "/camera,/lidar"',
            )
        require(
            _PARAMETER.fullmatch(self.parameter) is not None,
            f"{self.parameter!r} is not the name of a parameter",
            remedy='the publishers\' own, such as "throttle"',
        )

    @property
    def publisher_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.strip() for each in self.publishers.split(",") if each.strip()))

    def check(self, paths: Sequence[PathSpec]) -> None:
        guarded_topic(self, paths)


@dataclass(frozen=True)
class GuardedTopic:
    """Topic that a guard observes; its messages carry the time at which the path began."""

    topic: str
    type: str
    deadline_ms: float


def guarded_topic(spec: GuardSpec, paths: Sequence[PathSpec]) -> GuardedTopic:
    """Resolves the topic of a guard's spec among all known paths.

    Raises:
        ConfigurationError: the path is unknown (the nearest known one is named), ends at no topic or has no deadline,
            or the type of its messages is unknown.
    """
    topic, deadline_ms = spec.topic, spec.deadline_ms
    if not topic:
        by_name = {path.name: path for path in paths}
        refuse_unknown([spec.path], by_name, "path of the guard:")
        path = by_name[spec.path]
        topics = [each.name for each in paths if not each.of_phases]
        if path.of_phases:
            raise ConfigurationError(
                f"path {path.name!r} leads through phases of a goal, whose times no message carries",
                remedy=f"guard a path that ends at a topic ({', '.join(topics) or 'declare one'}), or name a topic",
            )
        deadline_ms = deadline_ms or path.deadline_ms or 0.0
        require(
            deadline_ms > 0,
            f"path {path.name!r} has no deadline",
            remedy="give it one (deadline_ms in [[tool.ldos.paths]]), or give the guard one",
        )
        topic = path.via[-1]
    kind = spec.type or KNOWN_TYPES.get(topic, "")
    require(bool(kind), f"the type of {topic} is not known", remedy='set it: type = "sensor_msgs/msg/Imu"')
    return GuardedTopic(topic, kind, deadline_ms)


LOAD_SPECS: Final[dict[str, type[LoadSpec]]] = {
    each.KIND: each for each in sorted(LoadSpec.__subclasses__(), key=lambda spec: [*LOADS].index(spec.KIND))
}
"""The specs of this module by kind of load, in the order of `LOADS`."""
