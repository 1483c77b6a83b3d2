"""The JSON Schema of reports, made from the types of `pytest_ldos.show.report.document`."""

from __future__ import annotations

import inspect
import json
import re
import types
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Any, Final, get_args, get_origin, get_type_hints

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.document import KIND, SCHEMA_VERSION, Document

_PLAIN: Final = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)$", re.MULTILINE)


def build_schema() -> dict[str, Any]:
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
            name: {
                **_describe_type(hints[name], definitions),
                "description": " ".join(f"{described[name][0].upper()}{described[name][1:]}".split()),
            }
            for name in names
        },
    }


def _describe_type(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if isinstance(kind, types.UnionType):
        return {"anyOf": [_describe_type(each, definitions) for each in get_args(kind)]}
    if get_origin(kind) is tuple:
        return {"type": "array", "items": _describe_type(get_args(kind)[0], definitions)}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}  # a type may contain itself
        if is_dataclass(kind):
            assert isinstance(kind, type)
            definitions[name] = _describe_fields(kind, definitions)
        else:
            assert issubclass(kind, StrEnum)
            values = [member.value for member in kind]
            definitions[name] = {"description": inspect.cleandoc(kind.__doc__ or ""), "enum": values}
    return {"$ref": f"#/$defs/{name}"}


def render_schema() -> str:
    return json.dumps(build_schema(), indent=2) + "\n"
