"""Trees of stacks."""

from __future__ import annotations

from pytest_ldos.record.profiles import FoldedStacks, build_tree

ONE = FoldedStacks({("p", "f", "g"): 3, ("p", "f"): 2, ("p", "h"): 1})
OTHER = FoldedStacks({("p", "f", "g"): 1, ("q",): 4})


def test_counts_include_callees_and_own_does_not():
    tree = build_tree([ONE, OTHER])
    found = {frame.path: (frame.counts, frame.own) for frame in tree.walk()}
    assert found[()] == ([6, 5], [0, 0])
    assert found["p",] == ([6, 1], [0, 0])
    assert found["p", "f"] == ([5, 1], [2, 0])
    assert found["p", "f", "g"] == ([3, 1], [3, 1])
    assert found["q",] == ([0, 4], [0, 4])


def test_walk_is_depth_first_and_sorted_by_name():
    names = ["".join(frame.path) for frame in build_tree([ONE, OTHER]).walk()]
    assert names == ["", "p", "pf", "pfg", "ph", "q"]


def test_deep_recursion_is_supported():
    deep = FoldedStacks({("f",) * 512: 1})
    assert sum(1 for _ in build_tree([deep]).walk()) == 513
