"""Late, too late and lost messages in hand-made sequences."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.instruments.topology.edges import Gap, Limits, find_gaps
from tests.builders.topologies import MS


@pytest.mark.parametrize(
    ("period_ms", "late_ms", "too_late_ms"),
    [(10, 2, 10), (25, 5, 25), (100, 5, 50), (1, 0.2, 1), (50, 5, 50)],
)
def test_limit_is_the_smaller_of_share_and_time(period_ms, late_ms, too_late_ms):
    limits = Limits()
    assert limits.late_ns(period_ms * MS) == late_ms * MS
    assert limits.too_late_ns(period_ms * MS) == too_late_ms * MS


def test_message_has_one_class_and_limits_are_inclusive():
    latencies = np.array([2 * MS, 2 * MS + 1, 10 * MS, 10 * MS + 1])
    limits = Limits()
    assert limits.late(latencies, 10 * MS).tolist() == [False, True, True, False]
    assert limits.too_late(latencies, 10 * MS).tolist() == [False, False, False, True]


def test_limits_are_configurable():
    limits = Limits(late_percentage=50, late_absolute_us=4000, too_late_percentage=200, too_late_absolute_us=15_000)
    assert (limits.late_ns(10 * MS), limits.too_late_ns(10 * MS)) == (4 * MS, 15 * MS)
    assert (limits.late_ns(6 * MS), limits.too_late_ns(6 * MS)) == (3 * MS, 12 * MS)


@pytest.mark.parametrize(
    ("numbers", "sent", "gaps"),
    [
        ([0, 1, 2], 3, []),
        ([0, 1, 2], None, []),
        ([0, 2], None, [Gap(1, 1, 1)]),
        ([0, 4, 5, 8], None, [Gap(1, 3, 1), Gap(6, 7, 3)]),
        ([3], None, [Gap(0, 2, 0)]),
        ([0, 1], 5, [Gap(2, 4, None)]),
        ([], 4, [Gap(0, 3, None)]),
        ([], None, []),
        ([0, 1], 1, []),
        ([0, 2, 1, 3], 4, []),
        ([0, 5, 2, 6], None, [Gap(1, 1, 1), Gap(3, 4, 1)]),
        ([0, 0, 1], 2, []),
    ],
)
def test_skipped_numbers_are_lost_and_overtaken_ones_are_not(numbers, sent, gaps):
    assert list(find_gaps(np.array(numbers, dtype=np.int64), sent)) == gaps
