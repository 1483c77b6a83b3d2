"""Values from the plain values of JSON, checked against type annotations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, Final, NoReturn, Union, get_args, get_origin, get_type_hints

_LARGEST: Final = 2**63
"""Integers below it are counts, times and durations; larger ones overflow in computations."""

_LONGEST_SHOWN: Final = 60

Reader = Callable[[Any, str], Any]
"""Reads a plain value; the text names it in errors."""


def _field_types(kind: type) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in dataclasses.fields(kind)}


field_types: Final[Callable[[type], Mapping[str, Any]]] = cache(_field_types)
"""Types of a dataclass's fields, by name."""


@dataclasses.dataclass(frozen=True)
class PlainReader:
    """Reads values of dataclasses and of what they consist of.

    Objects become dataclasses or mappings, lists tuples, and words members of enumerations. Floats must be finite,
    integers must fit into 64 bits, and booleans are no numbers.

    Attributes:
        by_type: what reads values of certain types instead.
        is_whole: objects must have every field; otherwise those with a default may be left out.
        most_items: of one list.
    """

    by_type: Mapping[Any, Reader] = dataclasses.field(default_factory=dict)
    is_whole: bool = False
    most_items: float = math.inf

    def read(self, hint: Any, value: Any, what: str) -> Any:
        """The value of a type.

        Args:
            what: name of the value in errors.

        Raises:
            ValueError: it, or a value in it, is of another type; the message names the first.
            TypeError: an object lacks a field, or has one too many.
        """
        origin, arguments = get_origin(hint), get_args(hint)
        if hint in self.by_type:
            return self.by_type[hint](value, what)
        if origin in (Union, UnionType):
            return self._read_one_of(arguments, value, what)
        if origin is tuple:
            return self._read_items(arguments[0], value, what)
        if origin is Mapping:
            return self._read_mapping(arguments, value, what)
        if dataclasses.is_dataclass(hint):
            return self._read_object(hint, value, what)
        return _read_word(hint, value, what) if issubclass(hint, StrEnum) else _read_leaf(hint, value, what)

    def _read_one_of(self, hints: tuple[Any, ...], value: Any, what: str) -> Any:
        """Reads one of several types; the error of ``X | None`` is that of ``X``."""
        if value is None and type(None) in hints:
            return None
        *others, last = (each for each in hints if each is not type(None))
        for hint in others:
            try:
                return self.read(hint, value, what)
            except ValueError:
                continue
        return self.read(last, value, what)

    def _read_items(self, hint: Any, value: Any, what: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{what} is no list")
        if len(value) > self.most_items:
            raise ValueError(f"{what} has more than {self.most_items} items")
        return tuple(self.read(hint, each, f"{what}[{number}]") for number, each in enumerate(value))

    def _read_mapping(self, hints: tuple[Any, Any], value: Any, what: str) -> dict[Any, Any]:
        if not isinstance(value, dict):
            _refuse(value, what)
        return {
            self.read(hints[0], name, f"a name in {what}"): self.read(hints[1], each, f"{what}[{_shown(name)}]")
            for name, each in value.items()
        }

    def _read_object(self, kind: Any, value: Any, what: str) -> Any:
        types = field_types(kind)
        if not isinstance(value, dict) or (self.is_whole and value.keys() != types.keys()):
            raise ValueError(f"{what or 'it'} has not exactly the fields of a {kind.__name__}")
        place = f"{what}." if what else ""
        return kind(**{name: self.read(types.get(name, object), each, place + name) for name, each in value.items()})


read_plain: Final = PlainReader().read
"""Reads a value whose types need no reader of their own; see `PlainReader.read`."""


def _read_word(kind: type[StrEnum], value: Any, what: str) -> StrEnum:
    if not isinstance(value, str) or value not in {each.value for each in kind}:
        raise ValueError(f"{what} is no {kind.__name__}")
    return kind(value)


def _read_leaf(hint: Any, value: Any, what: str) -> Any:
    return value if _is_plain(value, hint) else _refuse(value, what)


def _is_plain(value: object, hint: Any) -> bool:
    if hint is float:
        return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))
    return _is_whole(value) if hint is int else isinstance(value, hint)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST


def _refuse(value: object, what: str) -> NoReturn:
    raise ValueError(f"{what} is {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, int) and not _is_whole(value) and not isinstance(value, bool):
        return "a number of more than 64 bits"
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
