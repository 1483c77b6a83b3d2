"""Messages from plain values, as a user writes them in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import suggest
from pytest_ldos.robot.dds.messages import Message, default, fields_of


def fill(ros_type: str, values: Mapping[str, Any], where: str) -> Message:
    """Builds a message with the given fields, and ROS's defaults for all others.

    Raises:
        ConfigurationError: a field that the type does not have (the nearest is named), or a value of another type;
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
        return _base(detail[0], value, where)
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


def _dtype(base: str) -> str:
    return {"bool": "bool", "octet": "uint8", "byte": "uint8", "char": "uint8"}.get(base, base)


def _base(base: str, value: Any, where: str) -> Any:
    """A value of a basic type; whole numbers are floats, too."""
    if base.startswith("float") and type(value) is int:
        return float(value)
    kinds = {"string": str, "wstring": str, "bool": bool}
    kind = float if base.startswith("float") else kinds.get(base, int)
    if type(value) is not kind:
        raise ConfigurationError(f"{where} is {value!r}", remedy=f"it must be of type {base}")
    return value
