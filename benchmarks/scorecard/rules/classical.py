"""The two tests that everybody reaches for first, two-sided; red where the head is the worse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from benchmarks.scorecard.sample import Flags, Indices, Numbers


@dataclass(frozen=True)
class MannWhitney:
    """Attributes: `alpha` is the probability of error of one comparison."""

    alpha: float
    name: str
    source: str = "scipy.stats.mannwhitneyu, called in process"

    @property
    def title(self) -> str:
        return f"Mann–Whitney, p < {self.alpha:g}"

    def fires(self, base: Numbers, head: Numbers, base_blocks: Indices) -> Flags:
        found = stats.mannwhitneyu(head, base, axis=1, nan_policy="omit")
        trials = np.count_nonzero(np.isfinite(head), axis=1) * np.count_nonzero(np.isfinite(base), axis=1)
        worse: Flags = (found.pvalue < self.alpha) & (found.statistic > trials / 2)
        return worse


@dataclass(frozen=True)
class Welch:
    """Attributes: `alpha` is the probability of error of one comparison."""

    alpha: float
    name: str
    source: str = "scipy.stats.ttest_ind(equal_var=False), called in process"

    @property
    def title(self) -> str:
        return f"Welch's t-test, p < {self.alpha:g}"

    def fires(self, base: Numbers, head: Numbers, base_blocks: Indices) -> Flags:
        found = stats.ttest_ind(head, base, axis=1, equal_var=False, nan_policy="omit")
        worse: Flags = np.asarray((found.pvalue < self.alpha) & (found.statistic > 0))
        return worse
