"""Types of ROS 2 by name, and messages of rclpy or of the embedded layer with a user's plain values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np

from pytest_ldos.base.errors import ConfigurationError, require, suggest

_LIST: Final = re.compile(r"sequence<(?P<of>.+?)(, (?P<bound>\d+))?>|(?P<in>.+)\[(?P<size>\d+)\]")
_INTEGER: Final = re.compile(r"(u?)int(8|16|32|64)")
_PLAIN: Final[Mapping[str, tuple[type, ...]]] = {
    "boolean": (bool,),
    "float": (float, int),
    "double": (float, int),
    "string": (str,),
    "wstring": (str,),
}
_LARGEST_FLOAT: Final = float(np.finfo(np.float32).max)


def find_type(name: str, kind: str) -> Any:
    """Returns the class of ``PACKAGE/KIND/NAME`` (msg, srv, action); raises `ConfigurationError` if it is missing."""
    package, *others = name.split("/")
    if others[:-1] != [kind]:
        raise ConfigurationError(f"package {package} has no type {name}", remedy=f"give one as {package}/{kind}/NAME")
    try:
        return getattr(import_module(f"{package}.{kind}"), others[-1])
    except ModuleNotFoundError:
        remedy = f"source a workspace that has {package}, or correct the type in [tool.ldos.stack]"
        raise ConfigurationError(f"the type {name} is not installed: no package {package}", remedy=remedy) from None
    except AttributeError:
        raise ConfigurationError(f"package {package} has no type {name}", remedy="correct the type") from None


class MessageLayer(NamedTuple):
    """Makes a message of ``geometry_msgs/msg/Pose``, and returns the types of a message's fields by name."""

    new: Callable[[str], Any]
    types_of: Callable[[Any], Mapping[str, str]]


RCLPY: Final = MessageLayer(lambda name: find_type(name, "msg")(), lambda message: message.get_fields_and_field_types())


def fill(message: Any, values: Mapping[str, Any], where: str, layer: MessageLayer = RCLPY) -> Any:
    """Sets a message's fields from plain values, and returns it; raises `ConfigurationError` for wrong ones.

    A message of numbers alone, such as a point, may be given as their list, an integer by the name of a constant.
    """
    types = layer.types_of(message)
    for name, value in values.items():
        if name not in types:
            kind = type(message).__name__.rpartition("__")[2]
            raise ConfigurationError(f"{where}: {kind} has no field {name!r}", remedy=suggest(str(name), tuple(types)))
        is_constant = isinstance(value, str) and _INTEGER.fullmatch(types[name])
        plain = getattr(type(message), value.upper(), value) if is_constant else value
        made = _made(types[name], plain, f"{where}, {name}", layer)
        present = getattr(message, name)
        try:
            setattr(message, name, np.array(made, present.dtype) if isinstance(present, np.ndarray) else made)
        except AssertionError as error:  # a check of the generated code
            raise ConfigurationError(f"{where}, {name}: {error}", remedy="give a value of its type") from None
    return message


def _made(kind: str, value: Any, where: str, layer: MessageLayer) -> Any:
    """The value of a field of a type such as ``double[9]``, ``sequence<string, 3>`` or ``geometry_msgs/Pose``."""
    nested = _LIST.fullmatch(kind)
    if nested is None and "/" not in kind:
        return _scalar(kind, value, where)
    if nested is None:
        message = layer.new(kind.replace("/", "/msg/"))
        if isinstance(value, Sequence) and not isinstance(value, str):
            value = _by_name(layer.types_of(message), value)
        if not isinstance(value, Mapping):
            raise _of_another_type(kind, value, where)
        return fill(message, value, where, layer)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _of_another_type(kind, value, where)
    exactly, at_most = nested["size"], nested["bound"]
    if (exactly and len(value) != int(exactly)) or (at_most and len(value) > int(at_most)):
        raise _of_another_type(kind, value, where)
    return [_made(nested["of"] or nested["in"], each, f"{where}[{place}]", layer) for place, each in enumerate(value)]


def _by_name(types: Mapping[str, str], values: Sequence[Any]) -> Mapping[str, Any] | Sequence[Any]:
    """A list as fields of a message of as many numbers, or of one list; other lists unchanged."""
    if set(types.values()) <= {"double", "float"} and len(types) == len(values):
        return dict(zip(types, values, strict=True))
    (name, kind), *others = types.items()
    return {name: values} if not others and _LIST.fullmatch(kind) else values


def _scalar(kind: str, value: Any, where: str) -> Any:
    plain, _, bound = kind.rstrip(">").partition("<")
    integer = _INTEGER.fullmatch("uint8" if plain == "octet" else plain)
    if integer and isinstance(value, float) and value.is_integer():
        value = int(value)
    allowed = (int,) if integer else _PLAIN.get(plain, ())
    is_of_type = isinstance(value, allowed) and (bool in allowed or not isinstance(value, bool))
    if not is_of_type:
        raise _of_another_type(kind, value, where)
    if integer:
        is_signed, bits = not integer[1], int(integer[2])
        if not -is_signed * 2 ** (bits - 1) <= value < 2 ** (bits - is_signed):
            raise _of_another_type(kind, value, where)
    if (bound and len(value) > int(bound)) or (plain == "float" and _LARGEST_FLOAT < abs(value) < math.inf):
        raise _of_another_type(kind, value, where)
    if plain == "octet":
        return bytes([value])
    return float(value) if float in allowed else value


def _of_another_type(kind: str, value: Any, where: str) -> ConfigurationError:
    return ConfigurationError(f"{where} is {value!r}, and its type is {kind}", remedy="give a value of that type")


def require_number(message: Any, field: str, where: str, layer: MessageLayer = RCLPY) -> None:
    """Raises `ConfigurationError` unless a message has a number in a field such as ``point.x``."""
    kind, remedy = "", "name a field that is a number"
    for name in field.split("."):
        types = layer.types_of(message) if "/" in kind or not kind else {}
        require(name in types, f"{where} has no field {field!r}", remedy=suggest(name, types) if types else remedy)
        kind, message = types[name], getattr(message, name)
    is_number = kind in ("float", "double") or _INTEGER.fullmatch(kind)
    require(bool(is_number), f"field {field!r} of {where} is no number, but {kind}", remedy=remedy)
