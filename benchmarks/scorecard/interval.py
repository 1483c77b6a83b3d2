"""Interval of a probability from a count of events in a number of runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from scipy.special import betaincinv


@dataclass(frozen=True)
class Rate:
    """A share with its exact 95 % interval.

    Reference: C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26, 1934.
    """

    rate: float
    low: float
    high: float
    runs: int

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{100 * self.rate:.1f} % ({100 * self.low:.1f} – {100 * self.high:.1f})"


def clopper_pearson(events: int, runs: int, *, confidence: float = 0.95) -> Rate:
    """The share of `events` in `runs`.

    Raises:
        ValueError: no runs, or more events than runs.
    """
    if not 0 <= events <= runs or runs == 0:
        raise ValueError(f"{events} events in {runs} runs")
    tail = (1 - confidence) / 2
    low = 0.0 if events == 0 else float(betaincinv(events, runs - events + 1, tail))
    high = 1.0 if events == runs else float(betaincinv(events + 1, runs - events, 1 - tail))
    return Rate(events / runs, low, high, runs)
