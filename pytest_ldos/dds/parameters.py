"""The `set_parameters` service of a node, for the parameters it declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final

from pytest_ldos.dds.messages import Message, default
from pytest_ldos.dds.node import Node
from pytest_ldos.dds.service import Client, Replier, Service

_SET_PARAMETERS: Final = "rcl_interfaces/srv/SetParameters"


class ParameterType(IntEnum):
    """`rcl_interfaces/msg/ParameterType`, as far as it is used here."""

    NOT_SET = 0
    INTEGER = 2


class IntegerParameters:
    """Integer parameters of a node, which others may set.

    A parameter is unset (``None``) until somebody sets it, and again when it is set to
    `ParameterType.NOT_SET`.
    """

    def __init__(self, node: Node, names: tuple[str, ...]) -> None:
        self._values: dict[str, int | None] = dict.fromkeys(names)
        Service(node, _SET_PARAMETERS, f"/{node.name}/set_parameters", self._set_parameters)

    def __getitem__(self, name: str) -> int | None:
        return self._values[name]

    def _set_parameters(self, request: Message, replier: Replier) -> None:
        reasons = [self._set(parameter) for parameter in request.parameters]
        kind = "rcl_interfaces/msg/SetParametersResult"
        replier.reply(results=[default(kind, successful=not reason, reason=reason) for reason in reasons])

    def _set(self, parameter: Message) -> str:
        """Why the parameter cannot be set, or ``""``."""
        if parameter.name not in self._values:
            return f"parameter '{parameter.name}' is not declared"
        if parameter.value.type == ParameterType.NOT_SET:
            self._values[parameter.name] = None
        elif parameter.value.type == ParameterType.INTEGER:
            self._values[parameter.name] = parameter.value.integer_value
        else:
            return f"parameter '{parameter.name}' is an integer"
        return ""


class ParameterClient:
    """Sets integer parameters of another node."""

    def __init__(self, node: Node, target: str) -> None:
        self._client = Client(node, _SET_PARAMETERS, f"/{target}/set_parameters")

    def server_is_ready(self) -> bool:
        return self._client.server_is_ready()

    def set(self, values: Mapping[str, int | None], on_done: Callable[[list[str]], None]) -> None:
        """Sets `values`; `on_done` gets the reasons of those that were refused."""

        def finish(response: Message) -> None:
            on_done([result.reason for result in response.results if not result.successful])

        self._client.call(finish, parameters=[_parameter(name, value) for name, value in values.items()])


def _parameter(name: str, value: int | None) -> Any:
    kind = ParameterType.NOT_SET if value is None else ParameterType.INTEGER
    content = default("rcl_interfaces/msg/ParameterValue", type=int(kind), integer_value=value or 0)
    return default("rcl_interfaces/msg/Parameter", name=name, value=content)
