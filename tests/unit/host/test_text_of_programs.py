"""The text of other programs is read the same in every locale."""

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


def test_no_program_is_read_in_the_machines_locale():
    """`text=True` would be: an author's name in another alphabet ends us where the locale knows ASCII alone."""
    found = [
        f"{file}:{call.lineno}"
        for file in sorted(PACKAGE.rglob("*.py"))
        for call in calls(ast.parse(file.read_text("utf-8")), PROGRAMS)
        if {keyword.arg for keyword in call.keywords} & {"text", "universal_newlines"}
    ]
    assert found == []
