"""Several tests at once: Holm's step-down procedure.

Reference: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
Scandinavian Journal of Statistics 6(2), 1979.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class HolmStep:
    """What the procedure makes of one test.

    Attributes:
        level: probability of error that the test was held to.
        rejected: whether its hypothesis of no difference is rejected.
    """

    level: float
    rejected: bool


def step_down(p_values: Mapping[str, float], *, alpha: float) -> dict[str, HolmStep]:
    """Decides all tests so that any false rejection has probability at most `alpha`."""
    steps: dict[str, HolmStep] = {}
    still_rejecting = True
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        level = alpha / (len(p_values) - rank)
        still_rejecting = still_rejecting and p_values[name] <= level
        steps[name] = HolmStep(level, still_rejecting)
    return steps
