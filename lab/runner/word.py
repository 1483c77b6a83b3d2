"""A maintainer's word on a commit: the first line of a comment, ``/ldos SHA``, and options after it.

The words of the line are parted by one space or more. An option is ``name=value``, given once. The lines that follow
are ignored. Nothing is guessed: an abbreviated commit, a tab or a quoted line is no word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lab.runner.job import COMMIT
from lab.runner.refusal import Refused, quoted

LONGEST_LINE: Final = 1000
_COMMAND: Final = re.compile(r"/ldos(?![!-~])")
_PLAIN: Final = re.compile(r"[ -~]*")

_OPTIONS: Final = {
    "scenarios": re.compile(r"[a-z0-9_+]+(?:,[a-z0-9_+]+)*"),
    "stack": re.compile(r"ros2|embedded|both"),
    "trials": re.compile(r"[1-9][0-9]?|1[0-9][0-9]|200"),
}


@dataclass(frozen=True)
class Word:
    """Attributes:
    commit: its 40 digits.
    options: their values by name.
    """

    commit: str
    options: Mapping[str, str]


def read_word(comment: str) -> Word:
    """The word that a comment's first line gives.

    Raises:
        Refused: it gives none.
    """
    line = comment.partition("\n")[0].removesuffix("\r")
    if _COMMAND.match(line) is None:
        raise Refused("the comment's first line does not begin with /ldos")
    if len(line) > LONGEST_LINE:
        raise Refused(f"the comment's first line is longer than {LONGEST_LINE} characters")
    if _PLAIN.fullmatch(line) is None:
        raise Refused("the comment's first line has a character that is neither a space nor printable ASCII")
    _, *words = line.split()
    if not words or COMMIT.fullmatch(words[0]) is None:
        raise Refused("/ldos needs a whole commit after it: 40 digits, 0-9 and a-f")
    return Word(words[0], _read_options(words[1:]))


def _read_options(words: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise Refused(f"{quoted(word)} after the commit is no option: write name=value")
        if name not in _OPTIONS:
            raise Refused(f"/ldos has no option {quoted(name)}: it has {', '.join(_OPTIONS)}")
        if name in options:
            raise Refused(f"the option {name} is given twice")
        if _OPTIONS[name].fullmatch(value) is None:
            raise Refused(f"the option {name} cannot be {quoted(value)}")
        options[name] = value
    return options
