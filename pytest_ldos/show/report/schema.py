"""Builds the schema of the JSON form from the document's types and their docstrings.

``python -m pytest_ldos.show.report.schema`` regenerates ``schema.json``.
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.document import KIND, SCHEMA_VERSION, Document

FILE: Final = Path(__file__).with_name("schema.json")

_PLAIN: Final = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)$", re.MULTILINE)


def build_schema() -> dict[str, Any]:
    """The schema as a dictionary."""
    definitions: dict[str, Any] = {}
    whole = _describe_fields(Document, definitions)
    of_file = {
        "kind": {"const": KIND, "description": "What this file is."},
        "schema": {"const": SCHEMA_VERSION, "description": "Version of this schema."},
        "verdict": {
            **_describe_type(Verdict | None, definitions),
            "description": "The worst of all scenarios; null if none was judged.",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": KIND,
        **whole,
        "required": [*of_file, *whole["required"]],
        "properties": {**of_file, **whole["properties"]},
        "$defs": dict(sorted(definitions.items())),
    }


def _describe_fields(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly the fields of a dataclass."""
    text = inspect.cleandoc(kind.__doc__ or "")
    described = dict(_ATTRIBUTE.findall(text))
    hints = get_type_hints(kind)
    names = [each.name for each in fields(kind)]
    return {
        "description": text.split("\n", 1)[0],
        "type": "object",
        "additionalProperties": False,
        "required": names,
        "properties": {
            name: {**_describe_type(hints[name], definitions), "description": _sentence(described[name])}
            for name in names
        },
    }


def _sentence(text: str) -> str:
    return " ".join(f"{text[0].upper()}{text[1:]}".split())


def _describe_type(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind, types.UnionType):
        return {"anyOf": [_describe_type(each, definitions) for each in get_args(kind)]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _describe_type(get_args(kind)[0], definitions)}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # a type may contain itself
        definitions[kind.__name__] = _describe_named(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _describe_named(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return _describe_fields(kind, definitions)
    assert issubclass(kind, StrEnum)
    return {"description": inspect.cleandoc(kind.__doc__ or ""), "enum": list(_values(kind))}


def _values(kind: type[StrEnum]) -> Iterator[str]:
    return (member.value for member in kind)


def render_schema() -> str:
    """The schema as text of its file."""
    return json.dumps(build_schema(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(render_schema(), "utf-8")
