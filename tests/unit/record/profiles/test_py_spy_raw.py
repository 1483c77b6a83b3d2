"""Output of ``py-spy --format raw``."""

from __future__ import annotations

from pytest_ldos.record.py_spy import fold_py_spy


def test_lines_of_one_process_get_its_name():
    read = fold_py_spy("<module> (a.py:1);f (a.py:4) 12\n", {}, "simulator")
    assert read.profile.counts == {("simulator", "<module> (a.py:1)", "f (a.py:4)"): 12}


def test_process_is_the_innermost_ancestor():
    line = 'process 1:"bash -c a;b";process 25:"/usr/bin/python3 -c import x;f()";f (a.py:4) 3\n'
    assert fold_py_spy(line, {}, "ldos").profile.counts == {("python3", "f (a.py:4)"): 3}
    assert fold_py_spy(line, {25: "planner"}, "ldos").profile.counts == {("planner", "f (a.py:4)"): 3}


def test_lines_without_count_are_counted_and_left_out():
    read = fold_py_spy("f (a.py:4)\ng 0\n\x1b[31m\nh 2\n", {}, "p")
    assert read.damaged == 3
    assert read.profile.counts == {("p", "h"): 2}
