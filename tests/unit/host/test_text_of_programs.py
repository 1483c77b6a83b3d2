"""Output of other programs is decoded independently of the locale."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest_ldos

PACKAGE = Path(pytest_ldos.__file__).parent
PROGRAMS = {"run", "Popen", "check_output"}


def calls(tree: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in names:
                yield node


def test_no_output_is_decoded_with_the_locale():
    """`text=True` uses the locale, so that non-ASCII author names would fail in an ASCII locale."""
    found = [
        f"{file}:{call.lineno}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for call in calls(ast.parse(file.read_text("utf-8")), PROGRAMS)
        if {keyword.arg for keyword in call.keywords} & {"text", "universal_newlines"}
    ]
    assert found == []
