"""The index of messages: every error that the package raises, with the remedy that it prints."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import getdoc
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest_ldos
from docs.generate.text import flowing, table
from pytest_ldos.base import errors
from pytest_ldos.base.errors import ConfigurationError, LdosError, TraceUnreadable

SOURCE: Final = Path(pytest_ldos.__file__).parent
KINDS: Final = tuple(each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, LdosError))
_BLANK: Final = "…"
_REQUIRE: Final = "require"
_PLACES: Final = {kind.__name__: (kind.__name__, 2 if kind is TraceUnreadable else 0) for kind in KINDS} | {
    _REQUIRE: (ConfigurationError.__name__, 1)
}
"""Class of the error and place of the message among the arguments, by the function that is called."""

Texts = Mapping[str, ast.expr]  # expressions of texts, by the name of a variable or constant


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
    for file in sorted(SOURCE.rglob("*.py")):
        yield from _below(ast.parse(file.read_text("utf-8")), {})


def _below(scope: ast.AST, outer: Texts) -> Iterator[Message]:
    """Messages in a module or a function, also in its functions; `outer` are the texts of names around it."""
    nodes = list(_of_scope(scope))
    known = {**outer, **dict(pair for node in nodes for pair in _named(node))}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            yield from _below(node, known)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _PLACES:
            found = _read(node, known)
            if found.text.strip(f"{_BLANK} :,()'"):
                yield found


def _of_scope(scope: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _of_scope(node)


def _named(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names that are given a text, with its expression."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = [*zip(target.elts, node.value.elts, strict=False)]
        for name, value in pairs:
            if isinstance(name, ast.Name) and isinstance(value, ast.Constant | ast.JoinedStr | ast.BinOp):
                yield name.id, value


def _read(call: ast.Call, known: Texts) -> Message:
    assert isinstance(call.func, ast.Name)
    kind, place = _PLACES[call.func.id]
    text = call.args[place] if len(call.args) > place else None
    last = call.args[place + 1] if call.func.id == _REQUIRE and len(call.args) > place + 1 else None
    remedy = next((each.value for each in call.keywords if each.arg == "remedy"), last)
    return Message(kind, _text(text, known), _text(remedy, known))


def _text(node: ast.expr | None, known: Texts) -> str:
    """A string with blanks for what is not in the source; empty for no string at all."""
    if isinstance(node, ast.Name) and node.id in known:
        return _text(known[node.id], {name: value for name, value in known.items() if name != node.id})
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, {}) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left, known) + _text(node.right, known)
    return _BLANK if node is not None else ""


def _plain(text: str) -> str:
    """Text in a cell: nothing in it is markup."""
    if text in {"", _BLANK}:
        return ""
    return f"`{flowing(text.replace('`', chr(39)))}`"
