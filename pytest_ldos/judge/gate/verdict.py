"""Verdicts on a scenario, and their order of severity."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from pytest_ldos.base import exit_codes


class Verdict(StrEnum):
    """Verdict on a run compared with its baseline; metrics have one of the first four, or `NOT_COMPARABLE`."""

    PASSED = "passed"
    REGRESSED = "regressed"
    IMPROVED = "improved"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    INFRA = "infra"
    NO_BASELINE = "no_baseline"
    NOT_COMPARABLE = "not_comparable"


_SEVERITY: Final = (
    Verdict.PASSED,
    Verdict.IMPROVED,
    Verdict.NO_BASELINE,
    Verdict.NOT_COMPARABLE,
    Verdict.INCONCLUSIVE,
    Verdict.INVALID,
    Verdict.INFRA,
    Verdict.REGRESSED,
)

UNDECIDED: Final = frozenset({Verdict.INCONCLUSIVE, Verdict.NO_BASELINE, Verdict.NOT_COMPARABLE})
"""Verdicts that fail a run only if a verdict was required (``--ldos-strict``)."""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The most severe verdict; `PASSED` if there is none."""
    return max(verdicts, key=severity, default=Verdict.PASSED)


def severity(verdict: Verdict) -> int:
    """Rank of a verdict; larger is more severe."""
    return _SEVERITY.index(verdict)


def exit_code(verdict: Verdict, *, strict: bool) -> int:
    """Process exit code of a run with this worst verdict."""
    if verdict is Verdict.REGRESSED:
        return exit_codes.REGRESSED
    if verdict in {Verdict.INVALID, Verdict.INFRA}:
        return exit_codes.INVALID
    if verdict in UNDECIDED and strict:
        return exit_codes.INCONCLUSIVE
    return 0


def is_failure(verdict: Verdict, *, strict: bool) -> bool:
    """True if the test of the scenario fails."""
    return exit_code(verdict, strict=strict) != 0
