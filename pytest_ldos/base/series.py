"""Values shared by all wings: series, moments, and counts of context switches."""

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
    """A missing value, with the reason."""

    reason: str


@dataclass(frozen=True)
class Invalid:
    """A value whose measurement failed, with the reason."""

    reason: str


Value = float | Missing | Invalid
"""A measured number or the reason why there is none; never NaN."""

CENSORED = math.inf
"""A censored latency, known only to exceed the time limit."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """The values of one quantity over the trials of a run."""

    name: str
    unit: str
    better: Better
    values: tuple[float, ...]  # finite, or `CENSORED`
    strata: tuple[str, ...]  # stratum of the trial (its goal), one per value; values are compared within strata
    blocks: tuple[int, ...]  # number of the stack start, one per value
    trials: tuple[int, ...]  # index of the trial in its run, one per value
    # numbers that explain part of the variation, by name, one per value; NaN if unknown
    covariates: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    # question of the trial, one per value; equal questions of two versions are compared. Empty for a value without a
    # question; no elements if no value has one
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
        return tuple(value for value in self.values if math.isfinite(value))


@dataclass(frozen=True)
class SwitchCounts:
    """Context switches of threads that slept or were preempted, and migrations to other CPUs; ``None`` if unknown."""

    voluntary: int = 0
    involuntary: int = 0
    migrations: int | None = 0

    def __add__(self, other: SwitchCounts) -> SwitchCounts:
        known = self.migrations is not None and other.migrations is not None
        return SwitchCounts(
            self.voluntary + other.voluntary,
            self.involuntary + other.involuntary,
            (self.migrations or 0) + (other.migrations or 0) if known else None,
        )


@dataclass(frozen=True)
class Moments:
    """Count, mean and standard deviation (of the population, divided by the count) of values."""

    count: int
    mean: float
    sd: float

    def since(self, earlier: Moments) -> Moments | None:
        """Moments of the values after an earlier reading; ``None`` if there are none, or counting was restarted."""
        count = self.count - earlier.count
        if count <= 0:
            return None
        mean = (self.count * self.mean - earlier.count * earlier.mean) / count
        between = earlier.count * count / self.count * (mean - earlier.mean) ** 2
        squares = self.count * self.sd**2 - earlier.count * earlier.sd**2 - between
        return Moments(count, mean, math.sqrt(max(squares, 0.0) / count))
