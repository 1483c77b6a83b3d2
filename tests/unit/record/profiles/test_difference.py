"""Differences of two profiles, and their false alarms."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.record.profiles import FoldedStacks, compare_profiles

STACKS = [("p", name) for name in "abcdefghij"]


def drawn(rng, samples: int, shares) -> FoldedStacks:
    counts = rng.multinomial(samples, shares)
    return FoldedStacks({stack: int(count) for stack, count in zip(STACKS, counts, strict=True) if count})


def test_equal_versions_rarely_show_a_change():
    rng = np.random.default_rng(1)
    shares = np.array([30, 20, 15, 10, 8, 6, 5, 3, 2, 1]) / 100
    false = sum(
        bool(compare_profiles([drawn(rng, 800, shares)], [drawn(rng, 1200, shares)]).certain()) for _ in range(400)
    )
    assert false <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05 * 0.95)


def test_slower_function_is_found_with_its_interval():
    rng = np.random.default_rng(2)
    before, after = np.full(10, 0.1), np.array([0.25] + [0.75 / 9] * 9)
    difference = compare_profiles([drawn(rng, 2000, before)], [drawn(rng, 2000, after)])
    (found,) = [each for each in difference.certain() if each.path == ("p", "a")]
    assert found.low < 0.15 < found.high
    assert found.low > 0
    assert difference.certain()[0] is found


def test_spread_between_starts_widens_the_intervals():
    """With a large spread between starts, equal versions would otherwise nearly always show changes."""
    rng = np.random.default_rng(3)

    def version() -> list[FoldedStacks]:
        return [drawn(rng, 500, rng.dirichlet(np.full(10, 5.0))) for _ in range(4)]

    found = [compare_profiles(version(), version()) for _ in range(60)]
    assert all(each.knows_starts for each in found)
    assert np.median([each.dispersion for each in found]) > 3
    assert sum(bool(each.certain()) for each in found) <= 9


@pytest.mark.parametrize("count", [2, 10])
def test_two_starts_per_version_widen_the_intervals(count):
    rng, stacks = np.random.default_rng(5), STACKS[:count]

    def start() -> FoldedStacks:
        counts = rng.multinomial(500, rng.dirichlet(np.full(count, 20.0)))
        return FoldedStacks({stack: int(number) for stack, number in zip(stacks, counts, strict=True) if number})

    def version() -> list[FoldedStacks]:
        return [start(), start()]

    false = sum(bool(compare_profiles(version(), version()).certain()) for _ in range(200))
    assert false <= 200 * 0.05 + 3 * np.sqrt(200 * 0.05 * 0.95)


def test_single_stack_gives_no_dispersion():
    alone = FoldedStacks({("p",): 500})
    assert not compare_profiles([alone, alone], [alone, alone]).knows_starts


def test_single_start_gives_no_dispersion():
    profile = FoldedStacks({("p", "a"): 100, ("p", "b"): 100})
    difference = compare_profiles([profile], [profile])
    assert not difference.knows_starts
    assert difference.dispersion == 1
    assert not difference.certain()


def test_new_and_removed_functions_are_changes():
    difference = compare_profiles([FoldedStacks({("p", "old"): 500})], [FoldedStacks({("p", "new"): 500})])
    changes = {each.path[-1]: each.change for each in difference.certain()}
    assert changes == {"old": -1.0, "new": 1.0}


def test_more_samples_narrow_the_intervals():
    few, many = (compare_profiles([FoldedStacks({("a",): n})], [FoldedStacks({("a",): n})]) for n in (100, 10_000))
    assert many.half_width(0.1) < few.half_width(0.1) / 5


@pytest.mark.parametrize("empty", ["base", "head"])
def test_version_without_samples_is_refused(empty):
    sides = {"base": [FoldedStacks({("a",): 1})], "head": [FoldedStacks({("a",): 1})], empty: [FoldedStacks({})]}
    with pytest.raises(ProfilingFailed, match=f"the {empty} has no samples"):
        compare_profiles(sides["base"], sides["head"])
