"""ROS 2 Jazzy's messages: classes, CDR encoding and decoding, by `rosbags`.

Its generated code is about four times faster than the Cyclone DDS binding. Definitions that its Jazzy store lacks
(`moveit_msgs`, `control_msgs`, actions, services) are in `definitions/`. Arrays of numbers are NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from pytest_ldos.base.ros2 import DEFAULT

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
        return np.zeros(length, dtype=_dtype(element[0]))
    return [_default_value((element_node, element)) for _ in range(length)]


def _dtype(base: str) -> np.dtype[Any]:
    return np.dtype("uint8" if base in _OCTETS else base)


@cache
def _store() -> Typestore:
    store = get_typestore(Stores(DEFAULT.messages))
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
