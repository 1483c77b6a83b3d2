"""JSON whose values know their position, so that an error can name its line.

The grammar is the standard library's; only the positions of values are added.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, NoReturn

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.nearest import suggest

_decoder: Final[Any] = import_module("json.decoder")
_scanner: Final[Any] = import_module("json.scanner")

_DEEPEST: Final = 100
_LONGEST_WORD: Final = 200
_SHOWN: Final = 60
"""Number of characters of a wrong value that a message quotes."""

Scan = Callable[[str, int], tuple[Any, int]]


@dataclass(frozen=True)
class _Entry:
    """A value inside an object or an array, with the offset at which it begins."""

    value: Any
    offset: int


class _Refused(Exception):
    """A value that is valid JSON by its grammar, but still wrong."""

    def __init__(self, message: str, offset: int, remedy: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.remedy = remedy


class _LocatingDecoder(json.JSONDecoder):
    """Decodes members of objects and arrays to `_Entry`s."""

    def __init__(self) -> None:
        super().__init__()
        self.parse_object = self._parse_object
        self.parse_array = self._parse_array
        self.scan_once = _scanner.py_make_scanner(self)
        self._depth = 0

    def _parse_object(
        self, begin: tuple[str, int], strict: bool, scan: Scan, _hook: Any, _pairs_hook: Any, memo: Any
    ) -> Any:
        return _decoder.JSONObject(begin, strict, self._locating(scan), None, _unique, memo)

    def _parse_array(self, begin: tuple[str, int], scan: Scan) -> Any:
        return _decoder.JSONArray(begin, self._locating(scan))

    def _locating(self, scan: Scan) -> Scan:
        def locate(text: str, offset: int) -> tuple[Any, int]:
            self._depth += 1
            if self._depth > _DEEPEST:
                raise _Refused("nested too deeply", offset, f"at most {_DEEPEST} levels are read")
            value, end = scan(text, offset)
            self._depth -= 1
            if isinstance(value, float) and not math.isfinite(value):
                raise _Refused(f"{value} is no number of JSON", offset, "write a finite number")
            return _Entry(value, offset), end

        return locate


def _unique(pairs: list[tuple[str, _Entry]]) -> dict[str, _Entry]:
    found: dict[str, _Entry] = {}
    for key, entry in pairs:
        if key in found:
            raise _Refused(f"key '{key[:_SHOWN]}' stands there twice", entry.offset, "keep one of them")
        found[key] = entry
    return found


class _Source:
    """A file's text, which converts offsets to lines."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self._text = text
        self._ends = [each.start() for each in re.finditer("\n", text)]

    def line(self, offset: int) -> int:
        """Returns the line of an offset, from 1."""
        return bisect_left(self._ends, offset) + 1

    def line_of_value(self, offset: int) -> int:
        """Returns the line of the value's key, or, without one, the line where the value begins."""
        colon = self._last_before(offset)
        is_member = colon >= 0 and self._text[colon] == ":"
        return self.line(self._last_before(colon) if is_member else offset)

    def _last_before(self, end: int) -> int:
        """Returns the offset of the last character before `end` that is not a space."""
        while end > 0 and self._text[end - 1].isspace():
            end -= 1
        return end - 1


@dataclass(frozen=True)
class Place:
    """A value of a file, with all that an error message about it needs.

    Attributes:
        address: path from the root: ``nodes[2].publishers[0].period_ms``; empty for the root.
    """

    source: _Source
    address: str
    entry: _Entry

    @property
    def value(self) -> Any:
        """The value as the standard library reads it; for members of objects and arrays use `members` and `items`."""
        return self.entry.value

    @property
    def line(self) -> int:
        """The line of its key, or, without one, the line where it begins; counted from 1."""
        return self.source.line_of_value(self.entry.offset)

    @property
    def shown(self) -> str:
        """Short description of the value, for a message that something else was expected."""
        if isinstance(self.value, dict):
            return "an object"
        if isinstance(self.value, list):
            return "a list"
        text = json.dumps(self.value, ensure_ascii=False)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

    def refuse(self, problem: str, *, remedy: str = "") -> NoReturn:
        """Raises `ConfigurationError` with file, line and address."""
        where = f"{self.address}: " if self.address else ""
        raise ConfigurationError(f"{self.source.file}, line {self.line}: {where}{problem}", remedy=remedy)

    def members(self, known: Collection[str], *, required: Collection[str] = ()) -> dict[str, Place]:
        """Returns an object's members by key; refuses other values, unknown keys, and missing required keys."""
        if not isinstance(self.value, dict):
            self.refuse(f"is {self.shown}", remedy="it must be an object: { … }")
        longest = max(map(len, self.value), default=0)
        if longest > _LONGEST_WORD:
            self.refuse(f"has a key of {longest} characters", remedy=f"known are: {', '.join(sorted(known))}")
        found = {key: self._member(key, entry) for key, entry in self.value.items()}
        for key, place in found.items():
            if key not in known:
                place.refuse(f"unknown key '{key}'", remedy=suggest(key, known))
        for key in required:
            if key not in found:
                self.refuse(f"lacks the key '{key}'", remedy=f'add "{key}"')
        return found

    def _member(self, key: str, entry: _Entry) -> Place:
        return Place(self.source, f"{self.address}.{key}" if self.address else key, entry)

    def items(self) -> Iterator[Place]:
        """Yields the members of an array."""
        if not isinstance(self.value, list):
            self.refuse(f"is {self.shown}", remedy="it must be a list: [ … ]")
        for number, entry in enumerate(self.value):
            yield Place(self.source, f"{self.address}[{number}]", entry)

    def word(self, *, longest: int = _LONGEST_WORD) -> str:
        if not isinstance(self.value, str):
            self.refuse(f"is {self.shown}", remedy='it must be a text: "…"')
        if len(self.value) > longest:
            self.refuse(f"has {len(self.value)} characters", remedy=f"at most {longest} are read")
        return self.value

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            self.refuse(f"is {self.shown}", remedy="it must be a number")
        try:
            return float(self.value)
        except OverflowError:
            self.refuse(f"is {self.shown}", remedy="write a number that a program can read")

    def whole(self, *, least: int, most: int) -> int:
        """Returns a whole number in a range."""
        value = self.number()
        if not value.is_integer() or not least <= value <= most:
            self.refuse(f"is {self.shown}", remedy=f"it must be a whole number from {least} to {most}")
        return int(value)


def read_located(text: str, file: str) -> Place:
    """Returns the root of a file.

    Raises:
        ConfigurationError: the file is not JSON, repeats a key or has a number that JSON does not allow; with file
            and line.
    """
    source = _Source(file, text)
    try:
        return Place(source, "", _Entry(_LocatingDecoder().decode(text), len(text) - len(text.lstrip())))
    except json.JSONDecodeError as error:
        problem, line, remedy = f"{error.msg} (column {error.colno})", error.lineno, "write it as JSON"
    except _Refused as refused:
        problem, line, remedy = str(refused), source.line(refused.offset), refused.remedy
    except (ValueError, OverflowError, RecursionError) as error:
        problem, line, remedy = str(error), 1, "write numbers and nesting that a program can read"
    raise ConfigurationError(f"{file}, line {line}: {problem}", remedy=remedy)
