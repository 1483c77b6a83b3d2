"""Finds ROS 2 types by name, and builds messages from a user's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from rosidl_runtime_py.set_message import set_message_fields
from rosidl_runtime_py.utilities import get_action, get_service

from pytest_ldos.base.errors import ConfigurationError, suggest


def find_action_type(name: str) -> Any:
    """Returns an action's class; see `_find`."""
    return _find(get_action, name)


def find_service_type(name: str) -> Any:
    """Returns a service's class; see `_find`."""
    return _find(get_service, name)


def _find(get: Callable[[str], Any], name: str) -> Any:
    """Returns a class by its name, ``PACKAGE/KIND/NAME``.

    Raises:
        ConfigurationError: its package is not sourced, or has no such type.
    """
    package = name.partition("/")[0]
    try:
        return get(name)
    except ModuleNotFoundError:
        remedy = f"source a workspace that has {package}, or correct the type in [tool.ldos.stack]"
        raise ConfigurationError(f"the type {name} is not installed: no package {package}", remedy=remedy) from None
    except (AttributeError, ValueError):
        raise ConfigurationError(f"package {package} has no type {name}", remedy="correct the type") from None


def fill(message: Any, values: Mapping[str, Any], where: str) -> Any:
    """Sets a message's fields from plain values, and returns it.

    Raises:
        ConfigurationError: a field that the type does not have (the nearest is named), or a value of another type.
    """
    _require_fields(message, values, where)
    try:
        set_message_fields(message, deepcopy(dict(values)))  # it puts messages into the lists that it is given
    except (AttributeError, TypeError, ValueError, AssertionError) as error:
        raise ConfigurationError(f"{where}: {error}", remedy="give values of the type's own kinds") from None
    return message


def _require_fields(message: Any, values: Mapping[str, Any], where: str) -> None:
    """Refuses unknown field names at any depth of tables."""
    known = message.get_fields_and_field_types()
    for name, value in values.items():
        if name not in known:
            raise ConfigurationError(
                f"{where}: {type(message).__name__} has no field {name!r}", remedy=suggest(str(name), tuple(known))
            )
        inner = getattr(message, name)
        if isinstance(value, Mapping) and hasattr(inner, "get_fields_and_field_types"):
            _require_fields(inner, value, f"{where}, {name}")
