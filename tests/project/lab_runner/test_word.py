"""A maintainer's word: one line of a comment, read in one way."""

from __future__ import annotations

import re

import pytest

from lab.runner.refusal import Refused
from lab.runner.word import read_word
from tests.builders.words_of_maintainers import HEAD, INVALID, VALID


@pytest.mark.parametrize("comment", VALID, ids=range(len(VALID)))
def test_valid_comments(comment):
    word = read_word(comment)
    assert (word.commit, word.options) == VALID[comment]


@pytest.mark.parametrize("comment", INVALID, ids=range(len(INVALID)))
def test_invalid_comments(comment):
    with pytest.raises(Refused, match=re.escape(INVALID[comment])) as refused:
        read_word(comment)
    assert str(refused.value).isascii()
    assert str(refused.value).isprintable()


def test_word_that_accepts_starts_nothing():
    with pytest.raises(Refused, match="needs a whole commit"):
        read_word(f'/ldos accept {HEAD} T1 "wanted"')


def test_every_other_last_character_of_a_line_is_refused():
    """A line of a comment ends with LF, or CR LF: no other character ends one or passes for a blank."""
    for number in {*range(0x3100), 0xFEFF} - {*map(ord, " \r\n0123456789abcdef")}:
        with pytest.raises(Refused):
            read_word(f"/ldos {HEAD}{chr(number)}")
