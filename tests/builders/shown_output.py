"""Comparison of what a page shows of an output with what came: shortened by ``…``, and numbers may differ."""

from __future__ import annotations

import re
from collections.abc import Sequence

_ANY = "…"
_NUMBER = re.compile(r"[-+−±×≈<>(\[]*\d")


def differs(shown: Sequence[str], came: Sequence[str]) -> str:
    """The first shown lines that did not come; empty if all did.

    A line ``…`` stands for any lines, ``…`` in a line for any words, or the rest of a word and line. A word that begins with a
    number stands for any word that has one.
    """
    lines = [each.rstrip() for each in came]
    groups = _groups([each.rstrip() for each in shown])
    at = 0
    for index, group in enumerate(groups):
        starts = range(at, len(lines) - len(group) + 1) if index else [0]
        if index == len(groups) - 1:
            starts = [each for each in starts if each + len(group) == _end(lines)] or ([] if group else [len(lines)])
        start = next((each for each in starts if _begins(group, lines[each:])), None)
        if start is None:
            return "\n".join(group)
        at = start + len(group)
    return ""


def _groups(shown: Sequence[str]) -> list[list[str]]:
    """Lines that follow each other, between those that stand for any."""
    groups: list[list[str]] = [[]]
    for each in shown:
        if each.strip() == _ANY:
            groups.append([])
        else:
            groups[-1].append(each)
    while groups[-1] and not groups[-1][-1]:
        groups[-1].pop()
    return groups


def _end(lines: Sequence[str]) -> int:
    return max((number for number, each in enumerate(lines, 1) if each), default=0)


def _begins(group: Sequence[str], lines: Sequence[str]) -> bool:
    return len(group) <= len(lines) and all(
        re.fullmatch(_pattern(one), " ".join(other.split())) for one, other in zip(group, lines, strict=False)
    )


def _pattern(shown: str) -> str:
    text = " ".join(map(_word, shown.split()))
    return text.replace(f" {_ANY} ", ".*").replace(_ANY, ".*")


def _word(word: str) -> str:
    if word == _ANY or not _NUMBER.match(word):
        return _ANY.join(map(re.escape, word.split(_ANY)))
    return r"\S*\d\S*"
