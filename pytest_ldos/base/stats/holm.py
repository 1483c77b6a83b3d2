"""Weighted multiple testing: Holm's step-down procedure with a share of the error probability per test.

The share of a rejected test passes to the remaining tests, in proportion to their own shares.
A test that is not rejected changes nothing for the others.

References: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian
Journal of Statistics 6(2), 1979; for shares and several looks: W. Maurer, F. Bretz, "Multiple
Testing in Group Sequential Trials Using Graphical Approaches", Statistics in Biopharmaceutical
Research 5(4), 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Test = TypeVar("Test", bound=Hashable)


@dataclass(frozen=True)
class HolmStep:
    """Result of the procedure for one test.

    Attributes:
        alpha: significance level granted to the test.
        rejected: True if its hypothesis of no difference is rejected.
    """

    alpha: float
    rejected: bool


def step_down(
    shares: Mapping[Test, float], is_rejected: Callable[[Test, float], bool], *, alpha: float
) -> dict[Test, HolmStep]:
    """Decides all tests so that the probability of any false rejection is at most `alpha`.

    Args:
        shares: share of `alpha` by test; at most 1 in total.
        is_rejected: returns True if a test rejects at the given significance level.

    Raises:
        ValueError: the shares exceed 1.
    """
    if sum(shares.values()) > 1 + 1e-9:
        raise ValueError("the shares of the tests exceed the whole probability of error")
    steps = {test: HolmStep(alpha * share, False) for test, share in shares.items()}
    left = 1.0
    while newly := {test for test, step in steps.items() if not step.rejected and is_rejected(test, step.alpha)}:
        left -= sum(shares[test] for test in newly)
        for test in newly:
            steps[test] = HolmStep(steps[test].alpha, True)
        for test, step in steps.items():
            if not step.rejected:
                steps[test] = HolmStep(alpha * shares[test] / max(left, shares[test]), False)
    return steps
