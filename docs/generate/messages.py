"""The index of messages: every error that the package raises, with the remedy that it prints."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import getdoc
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest_ldos
from docs.generate.text import flowing, table
from pytest_ldos.base import errors
from pytest_ldos.base.errors import LdosError

SOURCE: Final = Path(pytest_ldos.__file__).parent
KINDS: Final = tuple(each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, LdosError))
_BLANK: Final = "…"


@dataclass(frozen=True, order=True)
class Message:
    """A message as the source has it; … stands for what only a run knows."""

    kind: str
    text: str
    remedy: str


def messages_page() -> Iterator[str]:
    """Every message by the class of its error."""
    yield from (
        "# Index of messages",
        "",
        "Every error names what is wrong and, behind `→`, what to do. This is the list of all of them as the sources",
        "have them, by class; … stands for names and numbers of a run. Causes and cures by class: [errors](errors.md).",
        "",
    )
    found = sorted(set(_messages()))
    for kind, alike in groupby(found, key=lambda each: each.kind):
        text = getdoc(getattr(errors, kind)) or ""
        yield from (f"## {kind}", "", flowing(text.partition("\n\n")[0]), "")
        yield from table(("message", "what to do"), [(_plain(each.text), _plain(each.remedy)) for each in alike])
        yield ""


def _messages() -> Iterator[Message]:
    names = {kind.__name__ for kind in KINDS}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                found = _read(node, node.func.id)
                if found.text.strip(f"{_BLANK} :,()'"):
                    yield found


def _read(call: ast.Call, kind: str) -> Message:
    remedy = next((each.value for each in call.keywords if each.arg == "remedy"), None)
    place = 2 if kind == "TraceUnreadable" else 0
    text = call.args[place] if len(call.args) > place else None
    return Message(kind, _text(text), _text(remedy))


def _text(node: ast.expr | None) -> str:
    """A string with blanks for what is not in the source; empty for no string at all."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else _BLANK for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return _BLANK if node is not None else ""


def _plain(text: str) -> str:
    """Text in a cell: nothing in it is markup."""
    if text in {"", _BLANK}:
        return ""
    return f"`{flowing(text.replace('`', chr(39)))}`"
