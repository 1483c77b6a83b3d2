"""Fields of dataclasses: their values, defaults and texts."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

from docs.generate.text import code, flowing, table, toml, without_default
from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.files import field_types
from pytest_ldos.scenario.fields import described_fields, parse_field

_UNITS: Final = {
    "_mb_s": "10^6 bytes/s",
    "_us": "µs",
    "_ms": "ms",
    "_s": "s",
    "_seconds": "s",
    "_hz": "Hz",
    "_mb": "MB",
    "_mbps": "10^6 bit/s",
    "_bytes": "bytes",
    "_percent": "%",
    "_percentage": "%",
    "_absolute": "µs",
}


def fields(spec: type, *, only: Iterable[str] | None = None, but: Iterable[str] = ()) -> Iterator[str]:
    """The table of a spec's fields.

    Raises:
        SystemExit: one is not documented.
    """
    described = documented(spec) | {name: each.meaning for name, each in described_fields(spec).items()}
    types = field_types(spec)
    names = [name for name in (types if only is None else only) if name not in set(but)]
    rows = []
    for name in names:
        if name not in described:
            raise SystemExit(
                f"reference: {spec.__name__}.{name} has no text: describe it with the field, or in the class"
            )
        value = ", ".join(filter(None, (field_value(types[name]), unit_of(name))))
        text, default = without_default(described[name])
        rows.append((code(name), value, default or _default_of(spec, name), text))
    yield from table(("key", "value", "default", "meaning"), rows)
    yield ""


def unit_of(name: str) -> str:
    """The unit at the end of a field's name; empty for none."""
    return next((unit for end, unit in _UNITS.items() if f"_{name}".endswith(end)), "")


def field_value(kind: Any) -> str:
    """The values that a type takes, in the words of what refuses others."""
    if get_origin(kind) in {Union, UnionType} and type(None) in get_args(kind):
        return field_value(next(each for each in get_args(kind) if each is not type(None)))
    if get_origin(kind) is tuple:
        return "a list of texts"
    if get_origin(kind) is not None and isinstance(get_origin(kind), type) and issubclass(get_origin(kind), Mapping):
        return "a table of numbers" if float in get_args(kind) else "a table of texts or numbers"
    try:
        parse_field(kind, object(), "")
    except ConfigurationError as error:
        return error.remedy.removeprefix("it must be ")
    raise SystemExit(f"reference: {kind} takes any value")


def _default_of(spec: type, name: str) -> str:
    field = next(each for each in dataclasses.fields(spec) if each.name == name)
    if field.default is not dataclasses.MISSING:
        return "none" if field.default is None else code(toml(field.default))
    if field.default_factory is dataclasses.MISSING:
        return "must be given"
    made = field.default_factory()
    return "empty" if isinstance(made, Mapping) else (inspect.getdoc(field.default_factory) or "").rstrip(".")


def documented(spec: type) -> dict[str, str]:
    """The texts of a class on its attributes, by name."""
    text = inspect.getdoc(spec) or ""
    _, _, below = text.partition("Attributes:\n")
    section = re.split(r"\n(?=\S)", below)[0]
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=    \S)", section):
        names, separator, meaning = entry.strip().partition(": ")
        if separator:
            found.update(dict.fromkeys(names.split(", "), flowing(meaning)))
    return found


def documented_all(spec: type) -> dict[str, str]:
    """The same with the texts of its base classes."""
    return {name: text for each in reversed(spec.__mro__[:-1]) for name, text in documented(each).items()}


def paragraph(spec: type) -> str:
    """The text of a class on itself, without sections."""
    text = inspect.getdoc(spec) or ""
    return flowing(re.split(r"\n\n(?:Attributes|Raises|Args):", text)[0].split("\n\n")[0])
