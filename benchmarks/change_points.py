"""Rates of false and true change points.

``python -m benchmarks.change_points`` measures; with ``--limits`` it simulates the limits again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pytest_ldos.base.stats.rank_tests import (
    CORRELATIONS,
    LENGTHS,
    cusum,
    find_change_points,
    normal_scores,
    seeded_intervals,
)


def autoregressions(rng: np.random.Generator, count: int, length: int, correlation: float) -> NDArray[np.float64]:
    """Gaussian, of unit variance."""
    noise = rng.standard_normal((count, length))
    values = np.empty_like(noise)
    values[:, 0] = noise[:, 0]
    for i in range(1, length):
        values[:, i] = correlation * values[:, i - 1] + np.sqrt(1 - correlation**2) * noise[:, i]
    return values


def strongest_cusum(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The statistic of each row of an array (one independent sequence per row): its maximum over all intervals."""
    largest = np.zeros(len(scores))
    for first, last in seeded_intervals(scores.shape[1]):
        largest = np.maximum(largest, cusum(scores[:, first:last]).max(axis=1))
    return largest


def simulate_limit(length: int, correlation: float, *, count: int, seed: int = 1) -> float:
    rng = np.random.default_rng((seed, length, round(100 * correlation)))
    chunks = [autoregressions(rng, 2000, length, correlation) for _ in range(count // 2000)]
    return float(np.quantile(np.concatenate([strongest_cusum(normal_scores(chunk)) for chunk in chunks]), 0.99))


def flagged(sequences: Iterable[NDArray[np.float64]]) -> float:
    return float(np.mean([bool(find_change_points(each)) for each in sequences]))


def measure(count: int) -> None:
    rng = np.random.default_rng(5)
    for length in (20, 50, 100, 300):
        for correlation in (0.0, 0.3, 0.5, 0.7, 0.9):
            share = flagged(autoregressions(rng, count, length, correlation))
            print(f"no change, {length} points, correlation {correlation}: {100 * share:.1f} % flagged", flush=True)
        heavy = rng.standard_t(2, (count, length))
        print(f"no change, {length} points, Student's t with 2 degrees: {100 * flagged(heavy):.1f} % flagged")
        for size in (1, 2, 3):
            shifted = rng.standard_normal((count // 4, length)) + size * (np.arange(length) >= length // 2)
            print(f"a step of {size} deviations, {length} points: {100 * flagged(shifted):.0f} % found")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", action="store_true")
    parser.add_argument("--count", type=int, default=2000)
    options = parser.parse_args()
    if options.limits:
        for length in LENGTHS:
            row = [f"{simulate_limit(length, each, count=20_000):.3f}" for each in CORRELATIONS]
            print(f"    ({', '.join(row)}),", flush=True)
    else:
        measure(options.count)


if __name__ == "__main__":
    main()
