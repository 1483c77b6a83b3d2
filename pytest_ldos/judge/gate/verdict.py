"""Verdicts on a scenario, and their order of severity."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Self

from pytest_ldos.base import exit_codes


class Tone(StrEnum):
    """Good or bad news; the page's format decides how to show it."""

    GOOD = "good"
    DOUBT = "doubt"
    BAD = "bad"


class Verdict(StrEnum):
    """Result for a run, or for one of its metrics (one of the first four, `SHOWN`, `NOT_JUDGED` or `NOT_COMPARABLE`).

    Each has a severity (larger is more severe), a tone, and the exit code of a run that it fails. A verdict of bad tone
    always fails the run, a doubtful one only if a verdict was required (``--ldos-strict``).
    """

    severity: int
    tone: Tone
    exit_code: int

    def __new__(cls, value: str, severity: int = 0, tone: Tone = Tone.GOOD, exit_code: int = 0) -> Self:
        member = str.__new__(cls, value)
        member._value_, member.severity, member.tone, member.exit_code = value, severity, tone, exit_code
        return member

    PASSED = "passed", 2, Tone.GOOD
    REGRESSED = "regressed", 9, Tone.BAD, exit_codes.REGRESSED
    IMPROVED = "improved", 3, Tone.GOOD
    INCONCLUSIVE = "inconclusive", 6, Tone.DOUBT, exit_codes.INCONCLUSIVE
    SHOWN = "shown", 0, Tone.GOOD
    NOT_JUDGED = "not_judged", 1, Tone.DOUBT, exit_codes.INCONCLUSIVE
    INVALID = "invalid", 7, Tone.BAD, exit_codes.INVALID
    INFRA = "infra", 8, Tone.BAD, exit_codes.INVALID
    NO_BASELINE = "no_baseline", 4, Tone.DOUBT, exit_codes.INCONCLUSIVE
    NOT_COMPARABLE = "not_comparable", 5, Tone.DOUBT, exit_codes.INCONCLUSIVE

    @property
    def word(self) -> str:
        """The verdict in words, such as ``not comparable``."""
        return self.value.replace("_", " ")

    @property
    def is_change(self) -> bool:
        """True if something became worse or better."""
        return self in {Verdict.REGRESSED, Verdict.IMPROVED}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The most severe verdict; `PASSED` if there is none."""
    return max(verdicts, key=lambda each: each.severity, default=Verdict.PASSED)


def exit_code(verdict: Verdict, *, strict: bool) -> int:
    """Process exit code of a run with this worst verdict."""
    return verdict.exit_code if strict or verdict.tone is not Tone.DOUBT else 0


def is_failure(verdict: Verdict, *, strict: bool) -> bool:
    """True if the test of the scenario fails."""
    return exit_code(verdict, strict=strict) != 0
