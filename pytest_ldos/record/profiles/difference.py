"""Differences between the function shares of two versions, with confidence intervals from their samples.

Samples are counts, so a share has sampling error. The interval of a difference is Agresti
and Caffo's, with the family-wise error divided over all frames by Bonferroni's rule. If a version was
sampled in several starts, their variation beyond chance widens all intervals (the dispersion of
quasi-likelihood; Student's distribution accounts for the uncertainty of its estimate). With a single start it is
unknown, and `Difference.knows_starts` is false.

References: A. Agresti, B. Caffo, "Simple and effective confidence intervals for proportions and differences of
proportions result from adding two successes and two failures", The American Statistician 54, 2000;
P. McCullagh, J. A. Nelder, "Generalized Linear Models", 2nd ed., 4.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from scipy.special import stdtrit

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.record.profiles.folded import FoldedStacks, Stack, merge
from pytest_ldos.record.profiles.tree import Frame, build_tree

ALPHA: Final = 0.05
"""Upper limit of the probability that any frame of equal versions is reported as changed."""

_FEWEST_EXPECTED: Final = 5.0
"""Expected samples of a stack per start, below which it does not contribute to the spread between starts."""

_FEWEST_DEGREES: Final = 0.5


@dataclass(frozen=True)
class Change:
    """Change of a frame's share, including the functions it called.

    Attributes:
        base, head: shares of all samples, 0 to 1.
        low, high: interval of the difference.
    """

    path: Stack
    base: float
    head: float
    low: float
    high: float

    @property
    def change(self) -> float:
        return self.head - self.base

    @property
    def is_certain(self) -> bool:
        """True if the interval excludes no change."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Difference:
    """Comparison of two profiles.

    Attributes:
        tree: of both; the first count of a frame is the base's.
        changes: of every frame except the root, by path.
        dispersion: ratio of the counts' variance between starts to that of chance; at least 1.
        degrees: degrees of freedom of the dispersion; 0 if it was not estimated.
    """

    tree: Frame
    changes: dict[Stack, Change]
    dispersion: float
    degrees: float

    @property
    def knows_starts(self) -> bool:
        """True if the variation between starts is known."""
        return self.degrees > 0

    @property
    def base_samples(self) -> int:
        return self.tree.counts[0]

    @property
    def head_samples(self) -> int:
        return self.tree.counts[1]

    @property
    def has_common_frame(self) -> bool:
        return any(all(frame.counts) for frame in self.tree.walk() if frame.path)

    def certain(self) -> list[Change]:
        """Changes whose interval excludes 0, the largest first."""
        return sorted((each for each in self.changes.values() if each.is_certain), key=lambda each: -abs(each.change))

    def detectable(self, share: float) -> float:
        """Half the width of the interval for a frame with this share in both versions."""
        low, high = _interval(
            (share * self.base_samples, self.base_samples),
            (share * self.head_samples, self.head_samples),
            _quantile(len(self.changes), self.degrees) * math.sqrt(self.dispersion),
        )
        return (high - low) / 2


def compare_profiles(base: Sequence[FoldedStacks], head: Sequence[FoldedStacks]) -> Difference:
    """Compares the head's shares with the base's.

    Args:
        base, head: one profile per start of a version.

    Raises:
        ProfilingFailed: a version has no samples.
    """
    for name, parts in (("base", base), ("head", head)):
        if not any(parts):
            raise ProfilingFailed(f"the {name} has no samples to compare", remedy="profile for longer")
    tree = build_tree([merge(base), merge(head)])
    frames = [frame for frame in tree.walk() if frame.path]
    squares, degrees = (sum(each) for each in zip(*map(_deviations, (base, head)), strict=True))
    dispersion = max(1.0, squares / degrees) if degrees else 1.0
    width = _quantile(len(frames), degrees) * math.sqrt(dispersion)
    changes = {frame.path: _change(frame, tree, width) for frame in frames}
    return Difference(tree, changes, dispersion, degrees)


def _quantile(frames: int, degrees: float) -> float:
    """Quantile for simultaneous intervals: Student's if the dispersion was estimated, otherwise the normal one."""
    beyond = ALPHA / 2 / max(frames, 1)
    return float(-stdtrit(degrees, beyond)) if degrees else NormalDist().inv_cdf(1 - beyond)


def _change(frame: Frame, tree: Frame, width: float) -> Change:
    (base, head), (bases, heads) = frame.counts, tree.counts
    low, high = _interval((base, bases), (head, heads), width)
    return Change(frame.path, base / bases, head / heads, low, high)


def _interval(base: tuple[float, int], head: tuple[float, int], width: float) -> tuple[float, float]:
    shares = [(count + 1) / (total + 2) for count, total in (base, head)]
    variance = sum(share * (1 - share) / (total + 2) for share, (_, total) in zip(shares, (base, head), strict=True))
    middle, reach = shares[1] - shares[0], width * math.sqrt(variance)
    return max(-1.0, middle - reach), min(1.0, middle + reach)


def _deviations(parts: Sequence[FoldedStacks]) -> tuple[float, float]:
    """Pearson's chi-squared of frequent stacks over starts, and its degrees of freedom; 0 if it cannot be estimated.

    If these are all stacks of the profile, there is one degree less, because their shares sum to 1.
    """
    sampled = [part for part in parts if part]
    whole = merge(sampled)
    shares = [part.samples / whole.samples for part in sampled]
    frequent = [stack for stack, count in whole.counts.items() if min(shares) * count >= _FEWEST_EXPECTED]
    covered = sum(whole.counts[stack] for stack in frequent) / whole.samples
    degrees = (len(sampled) - 1) * (len(frequent) - covered)
    if degrees < _FEWEST_DEGREES:
        return 0.0, 0.0
    expected = (
        (part, stack, share * whole.counts[stack])
        for part, share in zip(sampled, shares, strict=True)
        for stack in frequent
    )
    return sum((part.counts.get(stack, 0) - each) ** 2 / each for part, stack, each in expected), degrees
