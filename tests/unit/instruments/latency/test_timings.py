"""Percentiles, histograms, ratios."""

from __future__ import annotations

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from pytest_ldos.instruments.latency.findings import LONGEST_NS, Distribution, Percentiles, combine
from pytest_ldos.instruments.study import Estimate


def times(seed: int = 1, size: int = 20_000):
    return np.random.default_rng(seed).lognormal(10, 0.7, size).astype(np.int64)


def test_percentiles_are_observed_times():
    found = Percentiles.of(np.arange(1000, 2_001_000, 1000, dtype=np.int64))
    assert (found.low, found.p50, found.p90, found.p99, found.p999, found.high) == (1, 1000, 1800, 1980, 1998, 2000)
    assert found.mean == pytest.approx(1000.5)
    assert found.count == 2000


def test_single_time_is_every_percentile():
    found = Percentiles.of(np.array([7000], dtype=np.int64))
    assert {found.low, found.mean, found.p50, found.p90, found.p99, found.p999, found.high} == {7.0}


def percentile_ns(distribution: Distribution, percent: float) -> int:
    return distribution._histogram.get_value_at_percentile(percent)


def test_rounds_are_combined_by_medians_and_extremes():
    parts = [Percentiles.of(np.full(size, value, dtype=np.int64)) for size, value in ((1, 1000), (3, 2000), (6, 9000))]
    found = combine(parts)
    assert (found.low, found.p50, found.p999, found.high) == (1, 2, 2, 9)
    assert found.mean == pytest.approx((1 + 6 + 54) / 10)


def test_histogram_is_accurate_to_a_thousandth():
    distribution, seen = Distribution(), times()
    distribution.add(seen[:7000])
    distribution.add(seen[7000:])
    exact = Percentiles.of(seen)
    assert distribution.count == len(seen)
    for percent, value in ((50, exact.p50), (90, exact.p90), (99, exact.p99), (99.9, exact.p999), (100, exact.high)):
        assert percentile_ns(distribution, percent) / 1000 == pytest.approx(value, rel=2e-3)


def test_histogram_equals_one_of_single_times_and_is_compatible():
    distribution, seen = Distribution(), times(size=2000)
    distribution.add(seen)
    single = HdrHistogram(1, LONGEST_NS, 3)
    for each in seen.tolist():
        single.record_value(each)
    decoded = HdrHistogram.decode(distribution.encoded())
    assert decoded.get_total_count() == 2000
    for percent in (1, 25, 50, 75, 99, 99.95):
        assert decoded.get_value_at_percentile(percent) == single.get_value_at_percentile(percent)


def test_steps_of_a_distribution_end_at_one():
    distribution = Distribution()
    assert list(distribution.steps()) == []
    distribution.add(times())
    steps = list(distribution.steps())
    assert [step.share for step in steps] == sorted(step.share for step in steps)
    assert [step.value_ns for step in steps] == sorted(step.value_ns for step in steps)
    assert steps[-1].share == 1
    assert steps[-1].count == 20_000


def test_times_above_a_minute_are_clamped():
    distribution = Distribution()
    distribution.add(np.array([LONGEST_NS * 5], dtype=np.int64))
    assert percentile_ns(distribution, 50) == pytest.approx(LONGEST_NS, rel=1e-3)


def test_a_ratio_has_the_interval_of_its_rounds():
    found = Estimate.of_ratios([(11, 10), (12, 10), (10.5, 10)])
    assert found.value == pytest.approx((11 * 12 * 10.5) ** (1 / 3) / 10)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 1 < found.value < found.high


def test_coverage_of_ratio_intervals():
    draw = np.random.default_rng(3)
    covered = 0
    for _ in range(2000):
        drift = draw.normal(0, 0.5, 5)
        ours, theirs = (np.exp(drift + draw.normal(0, 0.1, 5)) for _ in range(2))
        found = Estimate.of_ratios(list(zip(ours.tolist(), (theirs * 2).tolist(), strict=True)))
        covered += found.low < 0.5 < found.high
    assert 0.93 < covered / 2000 < 0.97


def test_one_round_has_no_interval():
    found = Estimate.of_ratios([(2.0, 1.0)])
    assert (found.value, found.low, found.high) == (pytest.approx(2), None, None)
