"""Bencher's t-test threshold: a prediction interval for one new number from those before it.

Reference: bencherdev/bencher 8d75325, lib/bencher_boundary/src/limits/mod.rs (stated again). Its documentation gives
one example: 25 numbers with mean 100 and standard deviation 10 have the limit 121.46 at 0.977.

Bencher sees one number a report. Here every stack start of the base has been one report, its trials folded by their
mean, and the head is one report that folds all its starts (``--iter … --fold mean``): the reading that is kindest to
it, as the new number then has less noise than the interval allows for. Where the base is a single start, every trial of it
has been a report.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from benchmarks.scorecard.sample import Flags, Indices, Numbers

BOUNDARY = 0.99
"""The upper boundary of the examples in Bencher's documentation; it has no default."""


@dataclass(frozen=True)
class Bencher:
    name: str = "bencher_t_test"
    title: str = f"Bencher t-test, boundary {BOUNDARY}"
    source: str = "bencherdev/bencher 8d75325, lib/bencher_boundary (stated again)"

    def fires(self, base: Numbers, head: Numbers, base_blocks: Indices) -> Flags:
        starts = np.unique(base_blocks)
        reports = (
            base
            if len(starts) == 1
            else np.stack([np.nanmean(base[:, base_blocks == start], axis=1) for start in starts], 1)
        )
        limits = upper_limit(np.nanmean(reports, axis=1), np.nanstd(reports, axis=1, ddof=1), reports.shape[1])
        exceeded: Flags = np.nanmean(head, axis=1) > limits
        return exceeded


def upper_limit(mean: Numbers, deviation: Numbers, count: int, boundary: float = BOUNDARY) -> Numbers:
    """Upper limit of a new number."""
    limit: Numbers = mean + stdtrit(count - 1, boundary) * deviation * np.sqrt(1 + 1 / count)
    return limit
