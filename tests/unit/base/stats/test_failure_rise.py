"""Boschloo's test with several looks, against SciPy and by exact enumeration."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from pytest_ldos.base.stats.counts import Counts, failures_rose

LOOKS = tuple(Counts(head, 60) for head in (10, 15, 20, 25, 30))
FRACTIONS = tuple(look.head * 60 / (look.head + 60) / 20 for look in LOOKS)


def rose(head, base, *, looks=LOOKS, fractions=FRACTIONS, alpha=0.001):
    return failures_rose(head_failures=head, base_failures=base, looks=looks, fractions=fractions, alpha=alpha)


def test_single_look_is_boschloos_test():
    for head, base in itertools.product(range(0, 9, 2), repeat=2):
        expected = stats.boschloo_exact([[head, base], [8 - head, 9 - base]], alternative="greater").pvalue <= 0.03
        assert rose(head, base, looks=(Counts(8, 9),), fractions=(1.0,), alpha=0.03) == (expected and head > 0)


def test_looks_together_keep_the_false_alarm_probability():
    """Independent enumeration of all paths of head's failures, for several common rates."""
    alpha = 0.01
    for rate in (0.02, 0.1, 0.3, 0.7):
        alarm = 0.0
        for base in range(61):
            alive, before, hit = np.ones(1), 0, 0.0
            for number, look in enumerate(LOOKS, 1):
                added = look.head - before
                alive, before = np.convolve(alive, stats.binom.pmf(np.arange(added + 1), added, rate)), look.head
                for failures in range(len(alive)):
                    if rose(failures, base, looks=LOOKS[:number], fractions=FRACTIONS[:number], alpha=alpha):
                        hit += alive[failures]
                        alive[failures] = 0.0
            alarm += hit * stats.binom.pmf(base, 60, rate)
        assert 0 <= alarm <= alpha


def test_looks_at_two_growing_versions_keep_the_false_alarm_probability():
    """Independent enumeration of all paths of both versions' failures, for several common rates."""
    alpha, counts = 0.05, (4, 7, 10)
    looks = tuple(Counts(each, each) for each in counts)
    fractions = tuple(each / 10 for each in counts)
    alarms = []
    for rate in (0.02, 0.1, 0.3, 0.5, 0.7):
        alive, before, alarm = {(0, 0): 1.0}, 0, 0.0
        for number, count in enumerate(counts, 1):
            added = count - before
            chances, before = stats.binom.pmf(np.arange(added + 1), added, rate), count
            grown: dict[tuple[int, int], float] = {}
            for ((head, base), chance), one, two in itertools.product(
                alive.items(), range(added + 1), range(added + 1)
            ):
                place = head + one, base + two
                grown[place] = grown.get(place, 0.0) + chance * chances[one] * chances[two]
            hits = {
                place
                for place in grown
                if rose(*place, looks=looks[:number], fractions=fractions[:number], alpha=alpha)
            }
            alarm += sum(grown[place] for place in hits)
            alive = {place: chance for place, chance in grown.items() if place not in hits}
        alarms.append(alarm)
    assert max(alarms) <= alpha
    assert max(alarms) > alpha / 2  # it is not spent in vain


def test_seven_looks_at_hundreds_of_trials_take_little_memory():
    looks = tuple(Counts(each, each) for each in range(120, 301, 30))
    tracemalloc.start()
    try:
        assert rose(40, 15, looks=looks, fractions=tuple(look.head / 300 for look in looks))
        assert not rose(20, 15, looks=looks, fractions=tuple(look.head / 300 for look in looks))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000_000


def test_a_rise_to_a_third_is_found_within_thirty_trials():
    """The power of the exact test at a thousandth, by exact enumeration: 92 %."""
    alive, before, found = np.ones(1), 0, 0.0
    for number, look in enumerate(LOOKS, 1):
        added = look.head - before
        alive, before = np.convolve(alive, stats.binom.pmf(np.arange(added + 1), added, 0.3)), look.head
        for failures in range(len(alive)):
            if rose(failures, 0, looks=LOOKS[:number], fractions=FRACTIONS[:number]):
                found += alive[failures]
                alive[failures] = 0.0
    assert found == pytest.approx(0.92, abs=0.02)


@pytest.mark.parametrize(("head", "base"), [(0, 0), (0, 40)])
def test_no_failure_is_no_rise(head, base):
    assert not rose(head, base)


def test_more_failures_never_look_better():
    found = [rose(failures, 1) for failures in range(31)]
    assert found == sorted(found)
    assert found[-1]
