"""Context switches and migrations from the kernel's events."""

from __future__ import annotations

import pytest

from pytest_ldos.base.series import SwitchCounts
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.scheduling import build_thread_states, count_switches
from tests.builders.kernel import EPOCH_NS, THREADS, write_three_threads

A, B, C = THREADS


@pytest.fixture
def states(tmp_path):
    write_three_threads(tmp_path)
    return build_thread_states(read_trace(tmp_path))


@pytest.mark.parametrize(
    ("begin", "end", "tids", "expected"),
    [
        (0, 100, [A], SwitchCounts(2, 1, 1)),
        (0, 35, [A], SwitchCounts(0, 1, 0)),
        (35, 60, [A], SwitchCounts(1, 0, 1)),
        (0, 100, [B, C], SwitchCounts(2, 0, 0)),
        (0, 100, None, SwitchCounts(4, 1, 1)),
        (0, 100, [999], SwitchCounts(0, 0, 0)),
    ],
)
def test_sleep_is_voluntary_and_preemption_is_not(states, begin, end, tids, expected):
    assert count_switches(states, begin_ns=EPOCH_NS + begin, end_ns=EPOCH_NS + end, tids=tids) == expected
