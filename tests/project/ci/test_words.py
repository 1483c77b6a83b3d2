"""Docstrings and messages use plain words: CONTRIBUTING, "House words"."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

OPENING = re.compile(r"\s*(That|Whether|How|Of|Where|Who|Whom|Whose|What|Which|When|Why)\b")
"""Words that a docstring must not begin with."""

OLD_WORDS = (
    *("told", "said", "beside", "nobody", "strangers", "anew", "in turns", "held against", "has it not"),
    *("could have been seen", "could not have been seen", "who reads"),
)
"""The worst of the words in CONTRIBUTING's column "do not write", in docstrings and in messages."""

OLD = re.compile(rf"\b(?:{'|'.join(map(re.escape, OLD_WORDS))})\b")


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Docstrings, also those of constants and attributes."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else []:
            match each:
                case ast.Expr(value=ast.Constant(value=str()) as text):
                    yield text


def contrived_openings(source: str) -> list[str]:
    return [
        f"{each.lineno}: {each.value.strip().splitlines()[0]}"
        for each in _docstrings(ast.parse(source))
        if isinstance(each.value, str) and OPENING.match(each.value)
    ]


def old_words(source: str) -> list[str]:
    return [
        f"{node.lineno}: {found.group()}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if (found := OLD.search(" ".join(node.value.split())))
    ]


def _faults(refused: Callable[[str], list[str]], *folders: str) -> dict[str, list[str]]:
    files = [file for folder in folders for file in (*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.pyi"))]
    return {str(file.relative_to(ROOT)): found for file in files if (found := refused(file.read_text("utf-8")))}


def test_docstrings_begin_plainly():
    folders = ("pytest_ldos", ".ci", "benchmarks", "docs", "examples", "lab", "ros_ws/src", "studies", "tests")
    assert _faults(contrived_openings, *folders) == {}


def test_package_uses_plain_words():
    assert _faults(old_words, "pytest_ldos") == {}


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('"""Whether it did."""', ["1: Whether it did."]),
        ('def seconds():\n    """\n    Of a round.\n    """', ["2: Of a round."]),
        ('LIMIT = 3\n"""How long it waits."""', ["2: How long it waits."]),
        ('class Rate:\n    """Whetstones per second."""\n    text = "Whether it did."', []),
    ],
)
def test_openings_are_found(source, wrong):
    assert contrived_openings(source) == wrong


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ('"""Measures all anew."""', ["1: anew"]),
        ('print(f"{count} trials, held\\n   against {base}")', ["1: held against"]),
        ('turns = "return to the renewed lines"', []),
    ],
)
def test_old_words_are_found(source, wrong):
    assert old_words(source) == wrong


def test_refused_words_are_listed_in_contributing():
    """CONTRIBUTING has a replacement for each word that is refused."""
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## House words")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    assert [word for word in OLD_WORDS if not any(word in row for row in rows)] == []
