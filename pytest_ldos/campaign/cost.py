"""Seconds of the parts of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Amount:
    """Stack starts, warm-up trials and trials of a run."""

    starts: int
    warm_ups: int
    trials: int


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Seconds of a stack start and its end, of a warm-up trial, and of a trial with homing and reading the trace."""

    start_s: float
    warm_up_s: float
    trial_s: float

    def of(self, amount: Amount) -> float:
        """Seconds of a run."""
        return self.start_s * amount.starts + self.warm_up_s * amount.warm_ups + self.trial_s * amount.trials


GUESS: Final = Cost(start_s=12.0, warm_up_s=4.5, trial_s=4.5)
"""Rough cost on a typical machine, for a stack without measurements."""
