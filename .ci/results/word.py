"""The word of a maintainer: a comment whose first line says which commit is to be measured, or is accepted as it is.

The machine's hook reads the same line with a program of its own (``lab/runner/word.py``): it trusts nothing that is
decided here. One table of comments tests both.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from github_api import COMMIT, Failed

COMMAND: Final = "/ldos"
ACCEPT: Final = "accept"
_BEGINNING: Final = re.compile(r"/ldos(?![!-~])")
_PLAIN: Final = re.compile(r"[ -~]{1,1000}")
STACKS: Final = ("ros2", "embedded", "both")
_OPTIONS: Final = {
    "scenarios": re.compile(r"[a-z0-9_+]+(?:,[a-z0-9_+]+)*"),
    "stack": re.compile("|".join(STACKS)),
    "trials": re.compile(r"[1-9][0-9]?|1[0-9][0-9]|200"),
}


@dataclass(frozen=True)
class Word:
    """A maintainer's request.

    Attributes:
        commit: 40 hexadecimal digits.
        options: ``scenarios`` (separated by commas), ``stack`` and ``trials``, where they are given.
    """

    commit: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Acceptance:
    """A maintainer's word that changes for the worse of a commit are wanted.

    Attributes:
        commit: 40 hexadecimal digits.
        metrics: names, or ``success-rate``.
        reason: why.
    """

    commit: str
    metrics: tuple[str, ...]
    reason: str


def is_meant(body: str) -> bool:
    """True for a comment that begins with the command."""
    return _BEGINNING.match(body) is not None


def parse_word(body: str) -> Word | Acceptance:
    """The commit that a comment names, with its options, or with what is accepted of it.

    Raises:
        Failed: it is no word; says why.
    """
    line = body.partition("\n")[0].removesuffix("\r")
    if not is_meant(line) or _PLAIN.fullmatch(line) is None:
        raise Failed("the first line has more than words and spaces")
    commit, *words = line.split()[1:] or [""]
    if commit == ACCEPT:
        return _parse_acceptance(line)
    if COMMIT.fullmatch(commit) is None:
        raise Failed("no commit is named by its 40 digits")
    return Word(commit, _parse_options(words))


def _parse_acceptance(line: str) -> Acceptance:
    """``/ldos accept COMMIT METRIC… "reason"``; a metric's name with spaces is quoted, too."""
    try:
        commit, *metrics, reason = shlex.split(line)[2:]
    except ValueError:
        commit, metrics, reason = "", [], ""
    if COMMIT.fullmatch(commit) is None:
        raise Failed("no commit is named by its 40 digits")
    if not metrics or not line.rstrip().endswith('"') or not reason.strip():
        raise Failed('metrics are named, then the reason in quotes: /ldos accept COMMIT T1 "reason"')
    return Acceptance(commit, tuple(metrics), reason.strip())


def _parse_options(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in _OPTIONS:
            raise Failed(f"options are {', '.join(f'{each}=…' for each in _OPTIONS)}")
        if name in found:
            raise Failed(f"{name} is given twice")
        if _OPTIONS[name].fullmatch(value) is None:
            raise Failed(f"{name} cannot be that")
        found[name] = value
    return found
