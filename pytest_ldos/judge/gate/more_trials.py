"""Reasons why more trials would help, as values; `show.report.reasons` has a sentence for each."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ldos.judge.gate.aspects import Aspect


@dataclass(frozen=True)
class MayFailMore:
    """A larger share of head's trials failed, which may be chance."""


@dataclass(frozen=True)
class MayBeWorse:
    """A relevant change for the worse cannot be ruled out.

    Attributes:
        by: the largest relative effect that cannot be ruled out; infinite if there is no bound.
    """

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
