"""JSON files of users, with the line number of each value.

`json` reads the values; a second pass over the tokens adds the lines.
"""

from __future__ import annotations

import json
import math
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from pytest_ldos.base.errors import ConfigurationError, suggest

_DEEPEST: Final = 100
_LONGEST_WORD: Final = 200
_SHOWN: Final = 60  # largest length of a wrong value in a message

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]]|[^\s{}\[\]:,"]+')
"""A string, a bracket, or a number or word: all JSON tokens except commas and colons."""


class _Members(list[tuple[str, Any]]):
    """Members of an object in order, including those with a repeated key."""


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, end = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", end, token.start())
        end = token.start()
        yield token.group(), line


def _refuse_deep(text: str, file: str) -> None:
    depth = 0
    for part, line in _tokens(text):
        depth += (part in "{[") - (part in "}]")
        if depth > _DEEPEST:
            Place(file, line).refuse("nested too deeply", remedy=f"at most {_DEEPEST} levels are read")


def _locate(value: Any, tokens: Iterator[tuple[str, int]], file: str, key_line: int | None = None) -> Place:
    """Consumes the tokens of a value, and adds lines to it and all nested values."""
    _, line = next(tokens)
    if isinstance(value, _Members):
        found: dict[str, Place] = {}
        for key, member in value:
            _, line_of_key = next(tokens)
            if key in found:
                Place(file, line_of_key).refuse(f"key '{key[:_SHOWN]}' stands there twice", remedy="keep one of them")
            found[key] = _locate(member, tokens, file, line_of_key)
        value = found
        next(tokens)
    elif isinstance(value, list):
        value = [_locate(each, tokens, file) for each in value]
        next(tokens)
    elif isinstance(value, float) and not math.isfinite(value):
        Place(file, line).refuse(f"{value} is no number of JSON", remedy="write a finite number")
    return Place(file, key_line or line, value)


@dataclass(frozen=True)
class Place:
    """A value of a file, the line of its key (or of its start), and its address: ``nodes[2].period_ms``."""

    file: str
    line: int
    value: Any = None
    address: str = ""

    @property
    def shown(self) -> str:
        if isinstance(self.value, dict):
            return "an object"
        if isinstance(self.value, list):
            return "a list"
        text = json.dumps(self.value, ensure_ascii=False)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

    def refuse(self, problem: str, *, remedy: str = "") -> NoReturn:
        where = f"{self.address}: " if self.address else ""
        raise ConfigurationError(f"{self.file}, line {self.line}: {where}{problem}", remedy=remedy)

    def members(self, known: Collection[str], *, required: Collection[str] = ()) -> dict[str, Place]:
        """Returns the members of an object by key; refuses other types, unknown keys and missing required keys."""
        if not isinstance(self.value, dict):
            self.refuse(f"is {self.shown}", remedy="it must be an object: { … }")
        longest = max(map(len, self.value), default=0)
        if longest > _LONGEST_WORD:
            self.refuse(f"has a key of {longest} characters", remedy=f"known are: {', '.join(sorted(known))}")
        before = f"{self.address}." if self.address else ""
        found = {key: replace(each, address=f"{before}{key}") for key, each in self.value.items()}
        for key, place in found.items():
            if key not in known:
                place.refuse(f"unknown key '{key}'", remedy=suggest(key, known))
        for key in required:
            if key not in found:
                self.refuse(f"lacks the key '{key}'", remedy=f'add "{key}"')
        return found

    def items(self) -> Iterator[Place]:
        if not isinstance(self.value, list):
            self.refuse(f"is {self.shown}", remedy="it must be a list: [ … ]")
        for number, each in enumerate(self.value):
            yield replace(each, address=f"{self.address}[{number}]")

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
        value = self.number()
        if not value.is_integer() or not least <= value <= most:
            self.refuse(f"is {self.shown}", remedy=f"it must be a whole number from {least} to {most}")
        return int(value)


def read_located(text: str, file: str) -> Place:
    """Returns the root of a file.

    Raises `ConfigurationError` with file and line if it is not JSON, repeats a key or has an invalid number.
    """
    try:
        _refuse_deep(text, file)
        return _locate(json.loads(text, object_pairs_hook=_Members), _tokens(text), file)
    except json.JSONDecodeError as error:
        line, problem, remedy = error.lineno, f"{error.msg} (column {error.colno})", "write it as JSON"
    except ValueError as error:
        line, problem, remedy = 1, str(error), "write numbers that a program can read"
    raise ConfigurationError(f"{file}, line {line}: {problem}", remedy=remedy)


LONGEST_FILE: Final = 4 * 1024 * 1024  # bytes


def read_source(path: Path, what: str, *, remedy: str) -> str:
    """Returns the text of a regular file, `what` in errors; `remedy` is for a file that does not exist.

    Raises `ConfigurationError` if it cannot be read, is a device or a pipe, too long, or not UTF-8.
    """
    try:
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # a pipe may block, and a device may never end
            raise ConfigurationError(f"{what} {path} is a pipe or a device", remedy="write it to a file")
        with path.open("rb") as file:
            data = file.read(LONGEST_FILE + 1)
    except OSError as error:
        raise ConfigurationError(f"{what} {path.absolute()} cannot be read: {error.strerror}", remedy=remedy) from None
    except ValueError as error:  # its name contains a null character
        raise ConfigurationError(f"{what} {str(path)!r} cannot be read: {error}", remedy=remedy) from None
    if len(data) > LONGEST_FILE:
        raise ConfigurationError(f"{what} {path} is longer than {LONGEST_FILE // 1024} KiB", remedy=remedy)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}, line {line}: is no UTF-8", remedy="write it as JSON in UTF-8") from None
