"""Badges of verdicts."""

from __future__ import annotations

from typing import Final

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page.model import Badge, Tone
from pytest_ldos.show.report.words import verdict_word

_TONES: Final = {
    Verdict.PASSED: Tone.GOOD,
    Verdict.IMPROVED: Tone.GOOD,
    Verdict.REGRESSED: Tone.BAD,
    Verdict.INVALID: Tone.BAD,
    Verdict.INFRA: Tone.BAD,
}


def badge_of(verdict: Verdict | None) -> Badge:
    """The verdict as a badge; without a tone if nothing was judged."""
    return Badge(verdict_word(verdict), tone_of(verdict))


def tone_of(verdict: Verdict | None) -> Tone:
    """The tone of a verdict; plain if nothing was judged."""
    return Tone.PLAIN if verdict is None else _TONES.get(verdict, Tone.DOUBT)
