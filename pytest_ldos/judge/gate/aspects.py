"""Aspects of a metric beside its location, as values: spread, upper tail, and a rise in the middle of a run.

Each has a weight: the metric's share of the error probability is divided by weight among the location and those aspects
that are tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

LOCATION_WEIGHT: Final = 1.0

_SUSPICIOUS: Final = 0.005
"""p-value from which on a change that is not certain is reported, and trials are added where they may be."""


@dataclass(frozen=True)
class Spread:
    """Mean distance of the trials from their version's median, relative."""

    name: ClassVar[str] = "spread"
    weight: ClassVar[float] = 0.12

    base: float
    head: float


@dataclass(frozen=True)
class Tail:
    """Shares of the trials in the upper tail: by more than `beyond` (relative) worse than their version's median."""

    name: ClassVar[str] = "tail"
    weight: ClassVar[float] = 0.05

    base: float
    head: float
    beyond: float


@dataclass(frozen=True)
class LateRise:
    """A change for the worse within head's run.

    Attributes:
        from_trial: number of the first trial after it, from 1.
        ratio: head over base from then on, over the same before.
    """

    name: ClassVar[str] = "late_rise"
    weight: ClassVar[float] = 0.05

    from_trial: int
    ratio: float


Aspect = Spread | Tail | LateRise


@dataclass(frozen=True)
class Shape:
    """An aspect of one metric that is tested.

    Attributes:
        p_value: one-sided, for a change for the worse.
        effect: relative effect that must exceed the metric's floor.
    """

    aspect: Aspect
    p_value: float
    effect: float


@dataclass(frozen=True)
class Finding:
    """The result for an aspect.

    Attributes:
        tail: probability of error granted to the test.
        is_large: True if the change is larger than the metric's floor.
        is_regressed: True if it changed for the worse.
    """

    shape: Shape
    tail: float
    is_large: bool
    is_regressed: bool

    @property
    def is_suspect(self) -> bool:
        """True if it may have changed for the worse, which is not certain."""
        return self.is_large and not self.is_regressed and self.shape.p_value <= _SUSPICIOUS
