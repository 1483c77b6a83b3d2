"""ROS 2 Jazzy's messages, and their DDS writers and readers, with names and QoS as `rmw_cyclonedds_cpp` has them.

Reference: "Topic and Service name mapping to DDS", design.ros2.org. Cyclone needs a type's description to create and
announce a topic; `rosbags` encodes the samples (CDR). Its generated code is about four times faster than the Cyclone
DDS binding. Definitions that its Jazzy store lacks (`moveit_msgs`, `control_msgs`, actions, services) are in
`definitions/`. Arrays of numbers are NumPy arrays.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from cyclonedds._clayer import ddspy_take, ddspy_write_ts
from cyclonedds.core import DDSException, Entity, InstanceState, ReadCondition, SampleState, ViewState
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct, make_idl_struct, types
from cyclonedds.internal import SampleInfo
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from pytest_ldos.base import ros2
from pytest_ldos.base.errors import LdosError

_SECTION: Final = "== "
_REQUEST_HEADER: Final = "uint64 client_guid\nint64 sequence_number\n"

_OCTETS: Final = ("octet", "byte", "char")

Message = Any
"""A message instance; its class is generated from the definition, so fields are checked at run time."""


def encode(message: Message) -> bytes:
    """Encodes as CDR (XCDR1, little endian, with its 4-byte header), padded to 4 bytes for Cyclone."""
    data = bytes(_store().serialize_cdr(message, message.__msgtype__))
    return data.ljust(-(-len(data) // 4) * 4, b"\0")


def decode(data: bytes, ros_type: str) -> Message:
    return _store().deserialize_cdr(data, ros_type)


@cache
def prepare(ros_type: str) -> None:
    """Generates a type's codec in advance, so that it does not delay the first message."""
    decode(encode(default(ros_type)), ros_type)


def type_hash(ros_type: str) -> str:
    """REP-2016 hash of a message, ``RIHS01_…``, as expected by rmw in an endpoint's user data."""
    return _store().hash_rihs01(ros_type)


def default(ros_type: str, **fields: Any) -> Message:
    """Builds a message of ``package/msg/Name`` (also ``…/action/Name_Goal``, ``…/srv/Name_Request``).

    Fields that are not given have ROS's default values; an unknown one raises `TypeError`.
    """
    for name, description in fields_of(ros_type):
        if name not in fields:
            fields[name] = _default_value(description)
    return _store().types[ros_type](**fields)


def is_known(ros_type: str) -> bool:
    return ros_type in _store().fielddefs


@cache
def fields_of(ros_type: str) -> list[tuple[str, Any]]:
    """Names and `rosbags` field descriptions of a type, in wire order."""
    return list(_store().fielddefs[ros_type][1])


def _default_value(description: Any) -> Any:
    node, detail = description
    if node == Nodetype.BASE:
        base = detail[0]
        return 0.0 if base.startswith("float") else {"string": "", "wstring": "", "bool": False}.get(base, 0)
    if node == Nodetype.NAME:
        return default(detail)
    (element_node, element), count = detail
    length = count if node == Nodetype.ARRAY else 0
    if element_node == Nodetype.BASE and element[0] not in ("string", "wstring"):
        return np.zeros(length, dtype="uint8" if element[0] in _OCTETS else element[0])
    return [_default_value((element_node, element)) for _ in range(length)]


@cache
def _store() -> Typestore:
    store = get_typestore(Stores(ros2.DEFAULT.messages))
    types: dict[str, Any] = {}
    for file in sorted(files("pytest_ldos.robot.dds").joinpath("definitions").iterdir(), key=lambda path: path.name):
        for section in file.read_text("utf-8").split(f"\n{_SECTION}")[1:]:
            for ros_type, text in _expand(*section.split("\n", maxsplit=1)):
                # The parser renames services, so that its name for the type is not used.
                (types[ros_type],) = get_types_from_msg(text, ros_type).values()
    store.register(types)
    return store


def _expand(ros_type: str, body: str) -> Iterator[tuple[str, str]]:
    """Yields a message itself, a service's request and reply, or all parts of an action."""
    if "/msg/" in ros_type:
        yield ros_type, body
    elif "/srv/" in ros_type:
        request, reply = body.split("---\n")
        yield f"{ros_type}_Request", _REQUEST_HEADER + request
        yield f"{ros_type}_Response", _REQUEST_HEADER + reply
    else:
        goal, result, feedback = body.split("---\n")
        identity = "unique_identifier_msgs/UUID goal_id\n"
        yield f"{ros_type}_Goal", goal
        yield f"{ros_type}_Result", result
        yield f"{ros_type}_Feedback", feedback
        yield f"{ros_type}_FeedbackMessage", f"{identity}{ros_type}_Feedback feedback"
        yield f"{ros_type}_SendGoal_Request", f"{_REQUEST_HEADER}{identity}{ros_type}_Goal goal"
        yield f"{ros_type}_SendGoal_Response", f"{_REQUEST_HEADER}bool accepted\nbuiltin_interfaces/Time stamp"
        yield f"{ros_type}_GetResult_Request", f"{_REQUEST_HEADER}{identity}"
        yield f"{ros_type}_GetResult_Response", f"{_REQUEST_HEADER}int8 status\n{ros_type}_Result result"


_NAMES: Final = {"bool": "boolean", "float32": "float", "float64": "double", **dict.fromkeys(_OCTETS, "uint8")}


def type_names(message: Message) -> dict[str, str]:
    """Types of a message's fields in ROS 2's notation: ``sequence<geometry_msgs/Pose>``."""
    return {name: _type_name(description) for name, description in fields_of(message.__msgtype__)}


def _type_name(description: Any) -> str:
    node, detail = description
    if node == Nodetype.NAME:
        return str(detail).replace("/msg/", "/")
    inner, count = detail
    if node == Nodetype.BASE:
        name = _NAMES.get(inner, inner)
        return f"{name}<{count}>" if count else name
    element = _type_name(inner)
    if node == Nodetype.ARRAY:
        return f"{element}[{count}]"
    return f"sequence<{element}, {count}>" if count else f"sequence<{element}>"


ACTION_FEEDBACK = "/_action/feedback"
ACTION_STATUS = "/_action/status"


def dds_topic(ros_topic: str) -> str:
    return f"rt{ros_topic}"  # rt/joint_states


def dds_request_topic(service: str) -> str:
    return f"rq{service}Request"  # rq/add_two_intsRequest


def dds_reply_topic(service: str) -> str:
    return f"rr{service}Reply"  # rr/add_two_intsReply


_BASES: dict[str, Any] = {
    "bool": bool,
    "byte": types.uint8,
    "char": types.uint8,
    "octet": types.uint8,
    "string": str,
    "float32": types.float32,
    "float64": types.float64,
    **{f"{sign}int{size}": getattr(types, f"{sign}int{size}") for sign in ("", "u") for size in (8, 16, 32, 64)},
}


# Both are generic at run time, but not in their stubs.
_ARRAY: Any = types.array
_SEQUENCE: Any = types.sequence


@cache
def describe_type(ros_type: str) -> type[IdlStruct]:
    """The Cyclone DDS type of ``package/msg/Name``, with ROS 2's name."""
    package, kind, short = ros_type.split("/")
    fields = {name: _describe_field(field) for name, field in fields_of(ros_type)}
    return make_idl_struct(ros_type.replace("/", "_"), f"{package}.{kind}.dds_.{short}_", fields)


def _describe_field(field: Any) -> Any:
    node, detail = field
    if node == Nodetype.BASE:
        return _BASES[detail[0]]
    if node == Nodetype.NAME:
        return describe_type(detail)
    element, count = detail
    inner = _describe_field(element)
    if node == Nodetype.ARRAY:
        return _ARRAY[inner, count]
    return _SEQUENCE[inner, count] if count else _SEQUENCE[inner]


@dataclass(frozen=True, kw_only=True)
class QosProfile:
    """A ROS 2 QoS profile: history is keep-last `depth`."""

    depth: int = 10
    reliable: bool = True
    transient_local: bool = False

    def to_cyclone(self, *, user_data: str = "") -> Qos:
        policies = [
            Policy.History.KeepLast(self.depth),
            Policy.Reliability.Reliable(duration(seconds=1)) if self.reliable else Policy.Reliability.BestEffort,
            Policy.Durability.TransientLocal if self.transient_local else Policy.Durability.Volatile,
        ]
        if user_data:
            policies.append(Policy.Userdata(user_data.encode("ascii")))
        return Qos(*policies)


DEFAULT: Final = QosProfile()
CLOCK: Final = QosProfile(depth=1, reliable=False)
STATUS: Final = QosProfile(depth=1, transient_local=True)  # rcl_action's default profile of an action's status


_ANY: Final = SampleState.Any | ViewState.Any | InstanceState.Any


class DdsFailed(LdosError):
    """Cyclone DDS refused an operation."""


class WriteTimedOut(DdsFailed, TimeoutError):
    """A reliable writer waited too long for its readers."""


@dataclass(frozen=True)
class Sample:
    """Encoded data, and its writer's timestamp (wall clock, ns)."""

    data: bytes
    source_timestamp_ns: int


class Writer:
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
        return len(self._writer.get_matched_subscriptions())


class Reader:
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
        while taken := self._take(1):
            data, info = taken[0]
            if info.valid_data:
                return Sample(data, info.source_timestamp)
        return None

    def take_many(self, most: int) -> list[bytes]:
        """Takes the data of up to `most` samples, oldest first."""
        return [data for data, info in self._take(most) if info.valid_data]

    def _take(self, most: int) -> list[tuple[bytes, SampleInfo]]:
        taken: list[tuple[bytes, SampleInfo]] | int = ddspy_take(self._entity, _ANY, most)
        if isinstance(taken, int):
            raise DdsFailed(f"Cyclone DDS could not take from {self._topic.name} (code {taken})")
        return taken

    def matched(self) -> int:
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
