"""Context switches and migrations from the kernel's events."""

from __future__ import annotations

import pytest

from pytest_ldos.base.switch_counts import SwitchCounts
from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.scheduling import build_thread_states
from pytest_ldos.trace.execution.switches import count_switches
from tests.builders.kernel import EPOCH_NS, PREEMPTED, KernelTrace

A, B, C = 101, 102, 103


@pytest.fixture
def states(tmp_path):
    """A runs 10–20, is preempted by B, runs 30–40 on CPU 0, sleeps, runs 55–70 on CPU 1, sleeps."""
    kernel = KernelTrace()
    kernel.switch(5, 1, 0, C)
    kernel.switch(10, 0, 0, A)
    kernel.switch(20, 0, A, B, state=PREEMPTED)
    kernel.switch(30, 0, B, A)
    kernel.switch(40, 0, A, 0)
    kernel.wake(50, 0, A, target=1)
    kernel.switch(55, 1, C, A)
    kernel.switch(70, 1, A, 0)
    kernel.switch(80, 0, 0, B)
    kernel.write(tmp_path)
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
def test_sleep_is_voluntary_preemption_is_not(states, begin, end, tids, expected):
    assert count_switches(states, begin_ns=EPOCH_NS + begin, end_ns=EPOCH_NS + end, tids=tids) == expected
