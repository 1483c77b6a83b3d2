"""Verdicts, and the comparison of a metric that leads to one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, Self

from pytest_ldos.base import exit_codes


class Tone(StrEnum):
    """Good or bad news; the page's format decides how to show it."""

    GOOD = "good"
    DOUBT = "doubt"
    BAD = "bad"


class Verdict(StrEnum):
    """Result for a run, or for one of its metrics (one of the first five, `SHOWN`, `NOT_JUDGED` or `NOT_COMPARABLE`).

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
    REGRESSED = "regressed", 10, Tone.BAD, exit_codes.REGRESSED
    ACCEPTED = "accepted", 4, Tone.GOOD
    IMPROVED = "improved", 3, Tone.GOOD
    INCONCLUSIVE = "inconclusive", 7, Tone.DOUBT, exit_codes.INCONCLUSIVE
    SHOWN = "shown", 0, Tone.GOOD
    NOT_JUDGED = "not_judged", 1, Tone.DOUBT, exit_codes.INCONCLUSIVE
    INVALID = "invalid", 8, Tone.BAD, exit_codes.INVALID
    INFRA = "infra", 9, Tone.BAD, exit_codes.INVALID
    NO_BASELINE = "no_baseline", 5, Tone.DOUBT, exit_codes.INCONCLUSIVE
    NOT_COMPARABLE = "not_comparable", 6, Tone.DOUBT, exit_codes.INCONCLUSIVE

    @property
    def word(self) -> str:
        return self.value.replace("_", " ")

    @property
    def is_change(self) -> bool:
        return self in {Verdict.REGRESSED, Verdict.ACCEPTED, Verdict.IMPROVED}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    return max(verdicts, key=lambda each: each.severity, default=Verdict.PASSED)


def exit_code(verdict: Verdict, *, strict: bool) -> int:
    return verdict.exit_code if strict or verdict.tone is not Tone.DOUBT else 0


def is_failure(verdict: Verdict, *, strict: bool) -> bool:
    return exit_code(verdict, strict=strict) != 0


_SUSPICIOUS: Final = 0.005
"""p-value below which an uncertain change is reported, and trials are added if allowed."""


@dataclass(frozen=True)
class Spread:
    """Mean distance of the trials from their version's median, relative."""

    name: ClassVar[str] = "spread"
    weight: ClassVar[float] = 0.12

    base: float
    head: float


@dataclass(frozen=True)
class Tail:
    """Share of trials in the upper tail: more than `beyond` (relative) worse than their version's median."""

    name: ClassVar[str] = "tail"
    weight: ClassVar[float] = 0.05

    base: float
    head: float
    beyond: float


@dataclass(frozen=True)
class LateRise:
    """A change for the worse within head's run."""

    name: ClassVar[str] = "late_rise"
    weight: ClassVar[float] = 0.05

    from_trial: int  # number of the first trial after the change, from 1
    ratio: float  # head over base from that trial on, divided by head over base before


Aspect = Spread | Tail | LateRise


@dataclass(frozen=True)
class Shape:
    """A tested aspect of one metric: p-value of a change for the worse, and the effect that must exceed the floor."""

    aspect: Aspect
    p_value: float
    effect: float


@dataclass(frozen=True)
class Finding:
    """The result for an aspect, with the test's probability of error; a large change exceeds the metric's floor."""

    shape: Shape
    tail: float
    is_large: bool
    is_regressed: bool

    @property
    def is_suspect(self) -> bool:
        return self.is_large and not self.is_regressed and self.shape.p_value <= _SUSPICIOUS


@dataclass(frozen=True)
class MayFailMore:
    """A larger share of head's trials failed, which may be chance."""


@dataclass(frozen=True)
class MayBeWorse:
    """A relevant change for the worse cannot be ruled out; `by` bounds its relative effect, and may be infinite."""

    metric: str
    by: float


@dataclass(frozen=True)
class VariesTooMuch:
    """The minimum detectable effect is larger than tolerable for this metric."""

    metric: str


@dataclass(frozen=True)
class MayHaveChanged:
    """The spread or the tail of a metric may have grown, or it may have risen within the run."""

    metric: str
    aspect: Aspect


MoreTrials = MayFailMore | MayBeWorse | VariesTooMuch | MayHaveChanged


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The gate's result for one metric.

    Attributes:
        location: verdict on the location alone.
        head_median, base_median: medians of the uncensored values, in the metric's unit.
        ratio, low, high: head over base, with the interval that the verdict is based on.
        p_value: one-sided, for a change for the worse.
        tail: probability of error of each end of the interval.
        floor: relative effect below which nothing is reported.
        mde: minimum detectable effect: the smallest relative effect that would have been
            reported with probability 0.8; infinite if the samples are too small.
        explained: share of variance explained by covariates and removed.
        unlike: covariates that were not removed, because they differ between the versions.
        more_trials_because: why more trials would help; ``None`` if the result is clear.
        base_needs: trials required of a stored baseline before more trials of head can help; 0 if it has enough.
        findings: on the other aspects that were tested.
        is_suspicious: True if it may be worse, by a test that errs in up to `SCREENED` of unchanged runs; a reason to
            measure again only.
    """

    metric: str
    title: str
    unit: str
    location: Verdict
    head_count: int
    base_count: int
    head_median: float
    base_median: float
    ratio: float
    low: float
    high: float
    p_value: float
    tail: float
    floor: float
    mde: float
    explained: float
    unlike: tuple[str, ...] = ()
    more_trials_because: MoreTrials | None = None
    base_needs: int = 0
    findings: tuple[Finding, ...] = ()
    is_suspicious: bool = False

    @property
    def verdict(self) -> Verdict:
        return Verdict.REGRESSED if any(each.is_regressed for each in self.findings) else self.location

    @property
    def is_acceptable(self) -> bool:
        """True if its location became worse by a finite ratio, and no other aspect did; others cannot be accepted."""
        is_all = self.location is Verdict.REGRESSED and not any(each.is_regressed for each in self.findings)
        return is_all and self.has_ratio and math.isfinite(self.ratio)

    @property
    def is_from_zero(self) -> bool:
        """True if the base's median is 0; a change is then a difference without a ratio."""
        return self.base_median == 0

    @property
    def has_ratio(self) -> bool:
        """True if head is a positive multiple of base, also at the lower end of the interval."""
        return not self.is_from_zero and self.ratio > 0 and not -math.inf < self.low < 0


def is_underpowered(comparison: Comparison) -> bool:
    """True if the samples are too small to detect any change."""
    return comparison.verdict is Verdict.INCONCLUSIVE and math.isinf(comparison.mde)
