"""Series of numbers: what trials, measurements, baselines and the gate share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Better(StrEnum):
    """Direction in which a quantity improves."""

    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True)
class Missing:
    """A value that does not exist, and why: the trial never got there."""

    reason: str


@dataclass(frozen=True)
class Invalid:
    """A value that exists but cannot be trusted, and why: its measurement failed."""

    reason: str


Value = float | Missing | Invalid
"""A measured number or the reason why there is none; never NaN."""

CENSORED = math.inf
"""A latency of which only is known that it was longer than anybody waited."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """The values of one quantity over the trials of a run.

    Attributes:
        values: finite, or `CENSORED`.
        strata: what the trial was (its goal), one a value; only like is compared with like.
        trials: index of the trial in its run, one a value.
        questions: what the trial asked, one a value: equal ones of two versions are compared with each other. Empty
            where nothing makes two trials alike; no element if that is so of all.
        blocks: which start of the stack it belongs to, one a value.
        covariates: numbers that explain part of the variation, by name, one a value; NaN
            where unknown.
    """

    name: str
    unit: str
    better: Better
    values: tuple[float, ...]
    strata: tuple[str, ...]
    blocks: tuple[int, ...]
    trials: tuple[int, ...]
    covariates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    questions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        lengths = {
            len(self.values),
            len(self.strata),
            len(self.blocks),
            len(self.trials),
            len(self.questions or self.values),
            *(len(column) for column in self.covariates.values()),
        }
        if len(lengths) != 1:
            raise ValueError(f"the columns of series {self.name!r} differ in length")
        if any(math.isnan(value) for value in self.values):
            raise ValueError(f"series {self.name!r} holds a value that is no number")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def finite(self) -> tuple[float, ...]:
        """The values that are not censored."""
        return tuple(value for value in self.values if math.isfinite(value))
