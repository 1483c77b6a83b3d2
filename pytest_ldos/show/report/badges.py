"""Badges of verdicts."""

from __future__ import annotations

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page.model import Badge, Tone
from pytest_ldos.show.report.words import verdict_word


def badge_of(verdict: Verdict | None) -> Badge:
    """The verdict as a badge; without a tone if nothing was judged."""
    return Badge(verdict_word(verdict), tone_of(verdict))


def tone_of(verdict: Verdict | None) -> Tone:
    """The tone of a verdict; plain if nothing was judged."""
    return Tone.PLAIN if verdict is None else Tone(verdict.tone)
