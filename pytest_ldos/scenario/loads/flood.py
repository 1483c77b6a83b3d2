"""Specs of a flood of messages and of a guard of a path."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final

from pytest_ldos.base.errors import ConfigurationError, refuse_unknown, require
from pytest_ldos.base.paths import PathSpec
from pytest_ldos.scenario.loads.spec import LoadSpec, Proven, SchedulerGroup

SEQUENCE_BYTES: Final = 16
"""Hexadecimal digits of the sequence number in each message of a flood."""


class Reliability(StrEnum):
    """ROS 2's term for retransmission of lost messages."""

    BEST_EFFORT = "best_effort"
    RELIABLE = "reliable"


class FloodDomain(StrEnum):
    """DDS domain of a flood."""

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
        """Number of participants."""
        return self.participants or self.publishers


KNOWN_TYPES: Final[Mapping[str, str]] = {
    "/tf": "tf2_msgs/msg/TFMessage",
    "/joint_states": "sensor_msgs/msg/JointState",
}
"""Message types of topics common to all arms."""

_TOPIC: Final = re.compile(r"(/[A-Za-z_][A-Za-z0-9_]*)+", re.ASCII)
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
        require(0 <= self.late_share < 1, "late_share must be at least 0 and below 1")
        require(0 < self.least_share <= 1, "least_share must be above 0 and at most 1")
        require(0 < self.decrease < 1, "decrease must be between 0 and 1: the share is multiplied by it")
        require(1 <= self.calm_windows <= 10_000, "calm_windows must be between 1 and 10 000")
        require(0 < self.increase <= 1, "increase must be above 0 and at most 1")
        for name in self.publisher_names:
            require(
                _TOPIC.fullmatch(name) is not None,
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
        """Names in `publishers`, each once."""
        return tuple(dict.fromkeys(each.strip() for each in self.publishers.split(",") if each.strip()))

    def check(self, paths: Sequence[PathSpec]) -> None:
        guarded_topic(self, paths)


@dataclass(frozen=True)
class GuardedTopic:
    """Topic observed by a guard: the end of a path, with the deadline of its messages.

    Attributes:
        type: of its messages, which carry the time at which the path began.
    """

    topic: str
    type: str
    deadline_ms: float


def guarded_topic(spec: GuardSpec, paths: Sequence[PathSpec]) -> GuardedTopic:
    """Resolves the topic of a guard's spec.

    Args:
        paths: all known paths.

    Raises:
        ConfigurationError: the path is unknown (the nearest known one is named), ends at no topic or has no deadline,
            or the type of its messages is unknown.
    """
    topic, deadline_ms = (spec.topic, spec.deadline_ms) if spec.topic else _end_of(spec, paths)
    kind = spec.type or KNOWN_TYPES.get(topic, "")
    require(bool(kind), f"the type of {topic} is not known", remedy='set it: type = "sensor_msgs/msg/Imu"')
    return GuardedTopic(topic, kind, deadline_ms)


def _end_of(spec: GuardSpec, paths: Sequence[PathSpec]) -> tuple[str, float]:
    by_name = {path.name: path for path in paths}
    refuse_unknown([spec.path], by_name, "path of the guard:")
    path = by_name[spec.path]
    if path.of_phases:
        topics = [each.name for each in paths if not each.of_phases]
        raise ConfigurationError(
            f"path {path.name!r} leads through phases of a goal, whose times no message carries",
            remedy=f"guard a path that ends at a topic ({', '.join(topics) or 'declare one'}), or name a topic",
        )
    deadline_ms = spec.deadline_ms or path.deadline_ms or 0.0
    require(
        deadline_ms > 0,
        f"path {path.name!r} has no deadline",
        remedy="give it one (deadline_ms in [[tool.ldos.paths]]), or give the guard one",
    )
    return path.via[-1], deadline_ms
