"""A DDS writer and a DDS reader of encoded samples, without ROS and without tracing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from cyclonedds._clayer import ddspy_take, ddspy_write_ts
from cyclonedds.core import DDSException, Entity, InstanceState, ReadCondition, SampleState, ViewState
from cyclonedds.domain import DomainParticipant
from cyclonedds.internal import SampleInfo
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from pytest_ldos.base.errors import LdosError
from pytest_ldos.robot.dds.idl import describe_type
from pytest_ldos.robot.dds.messages import prepare
from pytest_ldos.robot.dds.qos import QosProfile

_ANY: Final = SampleState.Any | ViewState.Any | InstanceState.Any


class DdsFailed(LdosError):
    """Cyclone DDS refused an operation."""


class WriteTimedOut(DdsFailed):
    """A reliable writer waited too long for its readers."""


@dataclass(frozen=True)
class Sample:
    """Encoded data and its writer's timestamp (wall clock, ns)."""

    data: bytes
    source_timestamp_ns: int


class Writer:
    """Writes encoded samples of one ROS type to one DDS topic."""

    def __init__(
        self, participant: DomainParticipant, topic: str, ros_type: str, qos: QosProfile, *, user_data: str = ""
    ) -> None:
        prepare(ros_type)
        self._topic = Topic(participant, topic, describe_type(ros_type))
        self._writer = DataWriter(participant, self._topic, qos=qos.to_cyclone(user_data=user_data))
        self._entity = self._writer._ref  # noqa: SLF001 - what the binding's C layer takes
        self.gid: bytes = self._writer.guid.bytes

    def write(self, data: bytes, timestamp_ns: int) -> None:
        status = ddspy_write_ts(self._entity, data, timestamp_ns)
        if status == DDSException.DDS_RETCODE_TIMEOUT:
            raise WriteTimedOut(f"readers of {self._topic.name} did not keep up")
        if status < 0:
            raise DdsFailed(f"Cyclone DDS could not write to {self._topic.name} (code {status})")

    def matched(self) -> int:
        """Number of matched readers."""
        return len(self._writer.get_matched_subscriptions())


class Reader:
    """Takes encoded samples of one ROS type from one DDS topic."""

    def __init__(
        self, participant: DomainParticipant, topic: str, ros_type: str, qos: QosProfile, *, user_data: str = ""
    ) -> None:
        prepare(ros_type)
        self._topic = Topic(participant, topic, describe_type(ros_type))
        self._reader = DataReader(participant, self._topic, qos=qos.to_cyclone(user_data=user_data))
        self._entity = self._reader._ref  # noqa: SLF001
        self.condition = ReadCondition(self._reader, _ANY)
        self.gid: bytes = self._reader.guid.bytes

    def has_data(self) -> bool:
        return bool(self.condition.triggered)

    def take(self) -> Sample | None:
        """Takes the oldest sample, or ``None``; skips notices of departed writers."""
        while True:
            taken: list[tuple[bytes, SampleInfo]] | int = ddspy_take(self._entity, _ANY, 1)
            if isinstance(taken, int):
                raise DdsFailed(f"Cyclone DDS could not take from {self._topic.name} (code {taken})")
            if not taken:
                return None
            data, info = taken[0]
            if info.valid_data:
                return Sample(data, info.source_timestamp)

    def take_many(self, most: int) -> list[bytes]:
        """The data of up to `most` samples, oldest first."""
        taken: list[tuple[bytes, SampleInfo]] | int = ddspy_take(self._entity, _ANY, most)
        if isinstance(taken, int):
            raise DdsFailed(f"Cyclone DDS could not take from {self._topic.name} (code {taken})")
        return [data for data, info in taken if info.valid_data]

    def matched(self) -> int:
        """Number of matched writers."""
        return len(self._reader.get_matched_publications())


class ReaderWaitable:
    """The part of a `Waitable` that becomes ready when a reader has data."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.condition: Entity | None = reader.condition

    def is_ready(self) -> bool:
        return self._reader.has_data()

    def due_ns(self) -> int | None:
        return None


def wall_clock_ns() -> int:
    """The clock of DDS source timestamps."""
    return time.time_ns()
