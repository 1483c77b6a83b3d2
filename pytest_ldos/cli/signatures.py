"""Parameters that commands take in addition to those that are written at their functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, get_type_hints


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Parameters of a function with their annotations resolved."""
    hints = get_type_hints(function, include_extras=True)
    return [each.replace(annotation=hints[each.name]) for each in inspect.signature(function).parameters.values()]


def show_parameters(command: Callable[..., None], parameters: Iterable[inspect.Parameter]) -> None:
    """Lets typer see these parameters in place of a command's ``**arguments``."""
    signature = inspect.Signature(list(parameters))
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()} | {"return": None}
