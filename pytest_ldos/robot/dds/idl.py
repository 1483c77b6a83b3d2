"""Type descriptions for Cyclone DDS, made from ROS message definitions.

Only the description is used: Cyclone needs it to create a topic and to describe the type
to others. Samples are encoded by `messages`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from cyclonedds.idl import IdlStruct, make_idl_struct, types
from rosbags.interfaces import Nodetype

from pytest_ldos.robot.dds.messages import fields_of
from pytest_ldos.robot.dds.naming import dds_type

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


# Both are subscripted at run time only, which their stubs do not say.
_ARRAY: Any = types.array
_SEQUENCE: Any = types.sequence


@cache
def describe_type(ros_type: str) -> type[IdlStruct]:
    """The Cyclone DDS type of ``package/msg/Name``, named as ROS 2 names it."""
    fields = {name: _describe_field(field) for name, field in fields_of(ros_type)}
    return make_idl_struct(ros_type.replace("/", "_"), dds_type(ros_type).replace("::", "."), fields)


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
