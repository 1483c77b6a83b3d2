"""Tests measurements for a drift over a session."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Final

from pytest_ldos.base.stats.rank_tests import median
from pytest_ldos.base.stats.sequence import FEWEST_OF_TREND, estimate_trend
from pytest_ldos.measure.trial.record import TrialSet

FEWEST_BLOCKS: Final = 2 * FEWEST_OF_TREND
"""Fewest blocks: with fewer, a trend cannot be distinguished from chance."""

_NOTABLE_P: Final = 0.01
"""p-value below which a drift is reported; with half a dozen metrics, chance alone reports one in twenty sessions."""

_ByIndex = dict[int, tuple[int, float]]
"""Pair of blocks and value of each trial, by trial index."""


@dataclass(frozen=True)
class Drift:
    """Change of a metric over a session, in both versions together.

    Attributes:
        change: from the first pair of blocks to the last, relative to the version's median.
        p_value: two-sided, exact, under random order of the pairs of blocks.
    """

    metric: str
    change: float
    p_value: float

    @property
    def is_notable(self) -> bool:
        return self.p_value < _NOTABLE_P


def find_drift(head: TrialSet, base: TrialSet) -> tuple[Drift, ...]:
    """The drift of each metric over the pairs of blocks of a session, in the order they ran.

    Tests the hypothesis that the pairs are in random order (Mann–Kendall). Each pair is one value: trials of one start
    share its random effects, and would look like a drift if each counted by itself. The two blocks of a pair have
    trials of the same indices and seeds. The pair's value is the mean over both, each relative to its version's median,
    so that neither a difference between the versions nor a common effect of the seeds looks like a drift. Pairs without
    a successful trial of the same index in both versions are left out. Fewer than `FEWEST_BLOCKS` give no result.
    """
    names = dict.fromkeys(name for trial in head.trials for name in trial.measurements)
    drifts = (_drift(name, _by_index(head, name), _by_index(base, name)) for name in names)
    return tuple(drift for drift in drifts if drift is not None)


def _by_index(trials: TrialSet, name: str) -> _ByIndex:
    """Pair of blocks and value of each successful trial, by index."""
    measured = [(trial, trial.measurements.get(name)) for trial in trials.trials if trial.succeeded]
    return {
        trial.index: (trial.block // 2, each.number)
        for trial, each in measured
        if each is not None and each.number is not None
    }


def _drift(name: str, head: _ByIndex, base: _ByIndex) -> Drift | None:
    common = [index for index in sorted(head.keys() & base.keys()) if head[index][0] == base[index][0]]
    levels = [median([values[index][1] for index in common]) if common else 0.0 for values in (head, base)]
    if not all(levels):
        return None
    pairs: dict[int, list[float]] = {head[index][0]: [] for index in common}
    for index in common:
        pairs[head[index][0]] += [head[index][1] / levels[0], base[index][1] / levels[1]]
    values = [fmean(pairs[pair]) for pair in sorted(pairs)]
    trend = estimate_trend(values)
    return None if trend is None else Drift(name, trend.slope * (len(values) - 1), trend.p_value)
