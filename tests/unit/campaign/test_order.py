"""Properties of the order of blocks."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ldos.campaign.order import Block, Role, blocks_alone, first_blocks, next_pair, next_pairs, usual_size

SIZES = st.integers(1, 12)


def letters(blocks: list[Block]) -> str:
    return "".join("A" if block.role is Role.BASE else "B" for block in blocks)


def extended(trials: int, size: int, pairs: int) -> list[Block]:
    """A session with the given number of added pairs."""
    blocks = first_blocks(trials, size=size)
    for _ in range(pairs):
        blocks += next_pair(blocks[-1], size=size, limit=10_000)
    return blocks


def test_ten_trials_in_blocks_of_five_are_abba():
    assert letters(first_blocks(10, size=5)) == "ABBA"
    assert [block.trials for block in first_blocks(10, size=5)] == [range(5), range(5), range(5, 10), range(5, 10)]


def test_added_pairs_continue_the_sequence():
    assert letters(extended(10, 5, 2)) == "ABBABAAB"
    assert letters(extended(10, 5, 6)) == "ABBABAABBAABABBA"


@given(st.integers(1, 100), SIZES, st.integers(0, 9))
def test_both_versions_have_the_same_trials_after_every_pair(trials, size, pairs):
    blocks = extended(trials, size, pairs)
    for first, second in zip(blocks[::2], blocks[1::2], strict=True):
        assert first.trials == second.trials
        assert {first.role, second.role} == set(Role)
    made = [index for block in blocks if block.role is Role.HEAD for index in block.trials]
    assert made == list(range(trials + size * pairs))


@given(st.integers(1, 100), SIZES, st.integers(0, 9))
def test_blocks_are_numbered_over_both_versions_and_none_is_empty_or_too_large(trials, size, pairs):
    blocks = extended(trials, size, pairs)
    assert [block.number for block in blocks] == list(range(len(blocks)))
    assert all(len(block.trials) >= 1 for block in blocks)
    assert all(len(block.trials) <= size for block in blocks)


@given(st.integers(2, 100), SIZES)
def test_versions_alternate_in_being_first(trials, size):
    assert letters(first_blocks(trials, size=size)).startswith("ABBA")


@pytest.mark.parametrize(
    ("trials", "sizes"),
    [(2, [1, 1]), (4, [2, 2]), (5, [1, 2, 2]), (10, [2] * 5), (12, [2] * 6), (30, [2] * 15), (60, [4] * 15)],
)
def test_block_has_a_fifteenth_of_the_trials_or_two(trials, sizes):
    assert [len(block.trials) for block in first_blocks(trials)[::2]] == sizes


@given(st.integers(9, 1000))
def test_there_are_five_to_fifteen_pairs_by_default(trials):
    assert 10 <= len(first_blocks(trials)) <= 30
    assert usual_size(trials) >= 2


@pytest.mark.parametrize(
    ("trials", "problems", "sizes"),
    [
        (300, 30, [30] * 10),
        (150, 30, [30] * 5),
        (120, 30, [24] * 5),
        (40, 4, [4] * 10),
        (20, 2, [2] * 10),
        (300, 3, [20] * 15),
        (10, 30, [2] * 5),
        (500, 100, [100] * 5),
        (700, 700, [140] * 5),
        (7000, 700, [700] * 10),
    ],
)
def test_block_plans_all_problems_unless_fewer_than_five_pairs_remain(trials, problems, sizes):
    assert [len(block.trials) for block in first_blocks(trials, problems=problems)[::2]] == sizes


@pytest.mark.parametrize(
    ("trials", "problems", "sizes"),
    [(300, 30, [60] * 5), (90, 30, [30] * 3), (60, 30, [20] * 3), (10, 30, [3, 3, 4]), (9, 3, [3] * 3)],
)
def test_block_alone_plans_all_problems_unless_fewer_than_three_starts_remain(trials, problems, sizes):
    assert [len(block.trials) for block in blocks_alone(trials, problems=problems)] == sizes


@given(st.integers(9, 1000), st.integers(1, 1000), st.integers(0, 1000))
def test_both_versions_plan_each_problem_equally_often(trials, problems, more):
    blocks = first_blocks(trials, problems=problems)
    assert 10 <= len(blocks) <= len(first_blocks(trials))
    blocks += next_pairs(blocks[-1], limit=trials + more, problems=problems)
    planned = [
        Counter(index % problems for block in blocks if block.role is role for index in block.trials) for role in Role
    ]
    assert planned[0] == planned[1]


def test_requested_size_holds_for_problems_too():
    assert first_blocks(120, size=6, problems=30) == first_blocks(120, size=6)
    assert blocks_alone(120, size=6, problems=30) == blocks_alone(120, size=6)


def test_added_blocks_have_the_size_for_the_limit():
    (*_, last) = first_blocks(10)
    assert [block.trials for block in next_pair(last, limit=30)] == [range(10, 12)] * 2
    assert [block.trials for block in next_pair(last, limit=60)] == [range(10, 14)] * 2


def test_looks_are_a_sixth_of_the_limit_apart():
    blocks, looks = first_blocks(10), [10]
    while added := next_pairs(blocks[-1], limit=30):
        blocks += added
        looks.append(added[-1].trials.stop)
    assert looks == [10, 16, 22, 28, 30]
    assert len(blocks) == 30


def test_looks_at_a_suite_are_whole_pairs_of_at_least_a_sixth_of_the_limit():
    blocks = first_blocks(120, problems=30)
    looks = [120]
    while added := next_pairs(blocks[-1], limit=300, problems=30):
        blocks, looks = added, [*looks, added[-1].trials.stop]
    assert looks == [120, 180, 240, 300]


def test_blocks_of_a_requested_size_have_a_look_per_pair():
    (*_, last) = first_blocks(10, size=5)
    assert next_pairs(last, size=5, limit=30) == next_pair(last, size=5, limit=30)
    assert next_pairs(last, size=5, limit=10) == []


@given(st.integers(1, 12))
def test_a_linear_drift_cancels_over_two_pairs_and_a_quadratic_one_over_four(groups):
    blocks = extended(2, 1, 4 * groups - 2)
    for power, pairs in ((1, 2), (2, 4)):
        for begin in range(0, len(blocks) - 2 * pairs + 1, 2 * pairs):
            part = blocks[begin : begin + 2 * pairs]
            sums = {role: sum(block.number**power for block in part if block.role is role) for role in Role}
            assert sums[Role.HEAD] == sums[Role.BASE]


def test_a_single_trial_is_a_single_pair():
    assert letters(first_blocks(1, size=5)) == "AB"


def test_additions_end_at_the_limit():
    (*_, last) = first_blocks(10, size=5)
    assert [block.trials for block in next_pair(last, size=5, limit=12)] == [range(10, 12)] * 2
    assert next_pair(last, size=5, limit=10) == next_pair(last, size=5, limit=0) == []


@pytest.mark.parametrize(("trials", "size", "sizes"), [(10, 4, [3, 3, 4]), (3, 1, [1, 1, 1]), (7, 5, [3, 4])])
def test_blocks_have_similar_sizes(trials, size, sizes):
    assert [len(block.trials) for block in first_blocks(trials, size=size)[::2]] == sizes
