"""ROS 2 Jazzy's messages: classes, CDR encoding and decoding, and messages from plain values.

The definitions and the codec are those of `rosbags`, which generates code for each type
(about four times faster than the interpreted codec of the Cyclone DDS binding). Definitions
that its Jazzy store lacks (`moveit_msgs`, `control_msgs`, actions, services) are in `definitions/`.

A message field that is an array of numbers is a NumPy array; `default` builds a message
with every field at its ROS default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from pytest_ldos.base.errors import ConfigurationError, suggest
from pytest_ldos.base.ros2 import DEFAULT

_SECTION: Final = "== "
_REQUEST_HEADER: Final = "uint64 client_guid\nint64 sequence_number\n"

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

    Fields that are not given have ROS's default values.

    Raises:
        TypeError: the type has no field of a given name.
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
    return np.dtype({"bool": np.bool_, "octet": np.uint8, "byte": np.uint8, "char": np.uint8}.get(base, base))


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


def fill(ros_type: str, values: Mapping[str, Any], where: str) -> Message:
    """Builds a message with the given fields, and ROS's defaults for the others.

    Raises:
        ConfigurationError: an unknown field (the message has the nearest match), or a value of another type;
            `where` names the place.
    """
    known = dict(fields_of(ros_type))
    for name in values:
        if name not in known:
            short = ros_type.rpartition("/")[2]
            raise ConfigurationError(f"{where}: {short} has no field {name!r}", remedy=suggest(str(name), tuple(known)))
    return default(ros_type, **{name: _value(known[name], each, f"{where}, {name}") for name, each in values.items()})


def _value(description: Any, value: Any, where: str) -> Any:
    node, detail = description
    if node == Nodetype.BASE:
        base = detail[0]
        if base.startswith("float") and type(value) is int:
            return float(value)  # integers are valid floats
        kinds = {"string": str, "wstring": str, "bool": bool}
        if type(value) is not (float if base.startswith("float") else kinds.get(base, int)):
            raise ConfigurationError(f"{where} is {value!r}", remedy=f"it must be of type {base}")
        return value
    if node == Nodetype.NAME:
        if not isinstance(value, Mapping):
            raise ConfigurationError(f"{where} is {value!r}", remedy="it must be a table of fields")
        return fill(detail, value, where)
    element, count = detail
    if not isinstance(value, list) or (node == Nodetype.ARRAY and len(value) != count):
        wanted = f"a list of {count}" if node == Nodetype.ARRAY else "a list"
        raise ConfigurationError(f"{where} is {value!r}", remedy=f"it must be {wanted}")
    items = [_value(element, each, f"{where}[{number}]") for number, each in enumerate(value)]
    is_numeric = element[0] == Nodetype.BASE and element[1][0] not in ("string", "wstring")
    return np.array(items, dtype=_dtype(element[1][0])) if is_numeric else items
