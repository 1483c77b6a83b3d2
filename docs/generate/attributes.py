"""Constants of a module with the texts that stand below them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from enum import StrEnum
from types import ModuleType
from typing import Any


def constants_of(module: ModuleType) -> Iterator[tuple[Any, str]]:
    """Values of a module's constants with their texts, in order; the text is empty where there is none."""
    body = ast.parse(inspect.getsource(module)).body
    for place, node in enumerate(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            below = body[place + 1] if place + 1 < len(body) else None
            yield getattr(module, node.target.id, None), _text(below)


def members_of(kind: type[StrEnum]) -> dict[str, str]:
    """Texts below the members of an enumeration by the members' values."""
    definition = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(definition, ast.ClassDef)
    pairs = zip(definition.body, definition.body[1:], strict=False)
    return {
        kind[node.targets[0].id].value: _text(below)
        for node, below in pairs
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


def text_of(module: ModuleType, value: Any) -> str:
    """The text below a constant."""
    return next(text for each, text in constants_of(module) if each is value)


def _text(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return inspect.cleandoc(node.value.value)
    return ""
