"""Rows that belong together, as the C++ side finds them, compared with plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_ldos.trace.execution import _states
from pytest_ldos.trace.execution.columns import Growing
from tests.builders.chunks import small_chunks


def calls(*rows: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    thread, time_ns, handle = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return thread.astype(np.int32), time_ns.copy(), handle.astype(np.uint64)


def paired(starts, ends, *, lossy: bool = False) -> tuple[list[int], list[int], list[int]]:
    end, parent, running = _states.pair(calls(*starts), calls(*ends), lossy=lossy)
    return end.tolist(), parent.tolist(), running.tolist()


def test_nested_calls_on_two_threads():
    starts = [(0, 10, 1), (1, 11, 1), (0, 12, 2), (0, 20, 3)]
    ends = [(0, 15, 2), (1, 16, 1), (0, 30, 1)]
    assert paired(starts, ends) == ([2, 1, 0, -1], [-1, -1, 0, 0], [])


def test_calls_without_an_end_are_open():
    assert paired([(0, 10, 1), (0, 20, 2)], [(0, 5, 1), (0, 30, 7)]) == ([-1, -1], [-1, 0], [0, 1])


def test_a_start_proves_a_lost_end_only_if_events_were_lost():
    starts, ends = [(0, 10, 1), (0, 20, 1)], [(0, 30, 1)]
    assert paired(starts, ends, lossy=True) == ([-1, 0], [-1, -1], [])
    assert paired(starts, ends) == ([-1, 0], [-1, 0], [0])


def test_an_end_at_the_time_of_the_next_start_is_of_the_earlier_call():
    assert paired([(0, 10, 1), (0, 20, 1)], [(0, 20, 1), (0, 20, 1)]) == ([0, 1], [-1, -1], [])
    assert paired([(0, 20, 1)], [(0, 20, 1)]) == ([0], [-1], [])


def test_threads_must_be_known():
    with pytest.raises(ValueError, match="no thread"):
        paired([(-1, 10, 1)], [])


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("shift", [0, -1, -2])
def test_rows_near_keys(is_sorted, above, shift):
    random = np.random.default_rng(7)
    keys = np.sort(random.integers(0, 4, 300) << 8 | random.integers(0, 200, 300))
    rows = random.permutation(300).astype(np.int32)
    others = random.integers(0, 5, 200) << 8 | random.integers(0, 256, 200)
    others = np.sort(others) if is_sorted else others
    position = np.searchsorted(keys, others, side="right" if above else "left") + shift
    held = np.clip(position, 0, 299)
    same = (position == held) & (keys[held] >> 8 == others >> 8)
    expected = np.where(same, rows[held], -1)
    found = _states.near(keys, rows, others, None, bits=8, above=above, shift=shift)
    assert found.tolist() == expected.tolist()
    places = random.permutation(200).astype(np.int32)
    placed = _states.near(keys, rows, others, places, bits=8, above=above, shift=shift)
    assert placed[places].tolist() == expected.tolist()


@pytest.mark.parametrize("rows", [0, 1, 500])
def test_order_is_by_thread_then_by_row(rows):
    random = np.random.default_rng(rows)
    threads, since_ns = random.integers(0, 9, rows).astype(np.int32), np.sort(random.integers(0, 256, rows))
    keys, found = _states.order(threads, since_ns, bits=8)
    expected = np.argsort(threads, kind="stable")
    assert found.tolist() == expected.tolist()
    assert keys.tolist() == (threads.astype(np.int64) << 8 | since_ns)[expected].tolist()


def test_times_may_need_all_bits():
    keys, rows = _states.order(np.zeros(2, np.int32), np.array([0, (1 << 63) - 1]), bits=63)
    assert (keys.tolist(), rows.tolist()) == ([0, (1 << 63) - 1], [0, 1])


def test_events_of_no_thread_cannot_be_ordered():
    with pytest.raises(ValueError, match="no thread"):
        _states.order(np.array([0, -1], np.int32), np.zeros(2, np.int64), bits=8)


def test_places_must_be_in_the_table():
    one = np.zeros(1, dtype=np.int64)
    with pytest.raises(IndexError):
        _states.near(one, np.zeros(1, np.int32), one, np.array([1], np.int32), bits=8, above=True, shift=0)


def test_distinct_combinations_of_any_integers():
    random = np.random.default_rng(3)
    rows = 5000
    columns = [
        random.integers(-500, 500, rows),
        np.broadcast_to(np.array([9], dtype=np.uint32), rows),
        random.integers(0, 3, 2 * rows).astype(np.uint8)[::2],
    ]
    first, group = _states.distinct(columns)
    every = list(zip(*(column.tolist() for column in columns), strict=True))
    numbers = {each: number for number, each in enumerate(dict.fromkeys(every))}
    assert group.tolist() == [numbers[each] for each in every]
    assert [every[row] for row in first] == list(numbers)


def test_distinct_of_constant_columns_and_of_none():
    constant = np.broadcast_to(np.zeros(1, dtype=np.int64), 3000)
    first, group = _states.distinct([constant])
    assert first.tolist() == [0]
    assert not group.any()
    assert [each.tolist() for each in _states.distinct([constant[:0]])] == [[], []]


def test_columns_are_of_integers_and_one_length():
    with pytest.raises(ValueError, match="integers"):
        _states.distinct([np.zeros(2)])
    with pytest.raises(ValueError, match="lengths"):
        _states.distinct([np.zeros(2, np.int64), np.zeros(3, np.int64)])


@pytest.mark.parametrize("kind", [np.int32, object])
@pytest.mark.parametrize("rows", [0, 5, 90, 200])
def test_late_values_are_inserted_in_short_and_long_arrays(kind, rows):
    """400 bytes are in memory, more are in a file."""
    with small_chunks(50):
        growing, expected = Growing(kind), np.empty(0, dtype=kind)
        for step in range(4):
            values = np.arange(rows, dtype=kind) + 1000 * step
            growing.add(values)
            expected = np.append(expected, values)
            places = np.array([0, 0, 3] if step == 2 else [len(expected) - 1, len(expected)]).clip(0, len(expected))
            late = np.arange(len(places)).astype(kind) - step
            growing.insert(places, late)
            expected = np.insert(expected, places, late)
            assert growing.so_far().tolist() == expected.tolist()
            assert growing.rows == len(expected)
        assert growing.finish().tolist() == expected.tolist()
