"""The `set_parameters` service of a node, for the parameters it declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final

from pytest_ldos.robot.dds.messages import Message, default
from pytest_ldos.robot.dds.node import Node
from pytest_ldos.robot.dds.service import Client, Replier, Service

_SET_PARAMETERS: Final = "rcl_interfaces/srv/SetParameters"

SetParameter = Callable[[Message], str]
"""Takes a `rcl_interfaces/msg/ParameterValue`; returns the reason if it cannot be set, otherwise ``""``."""


class ParameterType(IntEnum):
    """`rcl_interfaces/msg/ParameterType`, as far as it is used here."""

    NOT_SET = 0
    INTEGER = 2
    DOUBLE = 3


class ParameterService:
    """Lets others set parameters of a node, each by its own rule."""

    def __init__(self, node: Node, rules: Mapping[str, SetParameter]) -> None:
        self._rules = rules
        Service(node, _SET_PARAMETERS, f"/{node.name}/set_parameters", self._set_parameters)

    def _set_parameters(self, request: Message, replier: Replier) -> None:
        reasons = [self._set(parameter) for parameter in request.parameters]
        kind = "rcl_interfaces/msg/SetParametersResult"
        replier.reply(results=[default(kind, successful=not reason, reason=reason) for reason in reasons])

    def _set(self, parameter: Message) -> str:
        """Sets a parameter; returns the reason if it cannot be set, otherwise ``""``."""
        rule = self._rules.get(parameter.name)
        return rule(parameter.value) if rule else f"parameter '{parameter.name}' is not declared"


class IntegerParameters:
    """Integer parameters of a node, which others may set.

    A parameter is unset (``None``) until somebody sets it, and again when it is set to
    `ParameterType.NOT_SET`.
    """

    def __init__(self, node: Node, names: tuple[str, ...]) -> None:
        self._values: dict[str, int | None] = dict.fromkeys(names)
        ParameterService(node, {name: self._setter(name) for name in names})

    def __getitem__(self, name: str) -> int | None:
        return self._values[name]

    def _setter(self, name: str) -> SetParameter:
        def set_it(value: Message) -> str:
            if value.type == ParameterType.NOT_SET:
                self._values[name] = None
            elif value.type == ParameterType.INTEGER:
                self._values[name] = value.integer_value
            else:
                return f"parameter '{name}' is an integer"
            return ""

        return set_it


class ParameterClient:
    """Sets parameters of another node.

    Args:
        target: its name, without the slash before it.
    """

    def __init__(self, node: Node, target: str) -> None:
        self._client = Client(node, _SET_PARAMETERS, f"/{target}/set_parameters")

    def server_is_ready(self) -> bool:
        return self._client.server_is_ready()

    def set(self, values: Mapping[str, int | float | None], on_done: Callable[[list[str]], None]) -> None:
        """Sets `values`, each by its type; `on_done` gets the reasons for refused values."""

        def finish(response: Message) -> None:
            on_done([result.reason for result in response.results if not result.successful])

        self._client.call(finish, parameters=[_parameter(name, value) for name, value in values.items()])


def _parameter(name: str, value: float | None) -> Any:
    kind = "rcl_interfaces/msg/ParameterValue"
    if value is None:
        content = default(kind, type=int(ParameterType.NOT_SET))
    elif isinstance(value, float):
        content = default(kind, type=int(ParameterType.DOUBLE), double_value=value)
    else:
        content = default(kind, type=int(ParameterType.INTEGER), integer_value=value)
    return default("rcl_interfaces/msg/Parameter", name=name, value=content)
