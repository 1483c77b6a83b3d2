"""Thread states from kernel events."""

from __future__ import annotations

import pytest

from pytest_ldos.trace.ctf.read import read_trace
from pytest_ldos.trace.execution.scheduling import SCHEDULING_EVENTS, build_thread_states
from tests.builders.ctf import Event, Int, Packet, Record, TraceBuilder
from tests.builders.kernel import DEAD, EPOCH_NS, PREEMPTED, WAKEUP_NEW, WAKING, KernelTrace

A, B, C = 101, 102, 103


@pytest.fixture
def kernel():
    return KernelTrace()


@pytest.fixture
def states_of(tmp_path):
    def build(*kernels, tid=None):
        for kernel in kernels:
            kernel.write(tmp_path / kernel.hostname)
        found = build_thread_states(read_trace(tmp_path, events=SCHEDULING_EVENTS))
        rows = [
            (row["tid"], row["begin_ns"] - EPOCH_NS, row["end_ns"] - EPOCH_NS, row["state"], row["cpu"])
            for row in found.iter_rows(named=True)
        ]
        return rows if tid is None else [row[1:] for row in rows if row[0] == tid]

    build.directory = tmp_path
    return build


def test_a_thread_is_woken_waits_for_a_cpu_runs_and_sleeps(kernel, states_of):
    kernel.switch(10, 0, A, 0)
    kernel.wake(20, 1, A, target=0)
    kernel.switch(25, 0, 0, A)
    kernel.switch(40, 0, A, 0)
    kernel.switch(50, 0, 0, B)
    assert states_of(kernel) == [
        (A, 10, 20, "blocked", None),
        (A, 20, 25, "runnable", 0),
        (A, 25, 40, "running", 0),
        (A, 40, 50, "blocked", None),
    ]


@pytest.mark.parametrize("state", [0, PREEMPTED])
def test_preempted_thread_is_runnable_and_names_its_preemptor(kernel, tmp_path, state):
    kernel.switch(10, 0, 0, A)
    kernel.switch(20, 0, A, B, state=state)
    kernel.switch(30, 0, B, A)
    kernel.switch(35, 0, A, 0)
    kernel.write(tmp_path)
    found = build_thread_states(read_trace(tmp_path))
    waited = found.filter(found["state"] == "runnable").row(0, named=True)
    assert (waited["tid"], waited["begin_ns"] - EPOCH_NS, waited["end_ns"] - EPOCH_NS) == (A, 20, 30)
    assert (waited["preempted_by"], waited["preempted_by_name"]) == (B, "thread-102")
    assert (waited["host"], waited["name"]) == ("builder", "thread-101")
    assert found.filter(found["state"] != "runnable")["preempted_by"].null_count() == 4


def test_woken_thread_was_not_preempted(kernel, tmp_path):
    kernel.switch(10, 0, A, B)
    kernel.wake(20, 0, A)
    kernel.switch(30, 0, B, A)
    kernel.switch(31, 0, A, 0)
    kernel.write(tmp_path)
    found = build_thread_states(read_trace(tmp_path))
    assert found["preempted_by"].null_count() == len(found)


def test_migration_moves_the_wait_to_another_cpu(kernel, states_of):
    kernel.switch(10, 0, 0, A)
    kernel.switch(20, 0, A, B, state=PREEMPTED)
    kernel.migrate(25, 1, A, orig=0, dest=1)
    kernel.switch(28, 1, 0, A)
    kernel.switch(40, 1, A, 0)
    assert states_of(kernel, tid=A) == [
        (10, 20, "running", 0),
        (20, 25, "runnable", 0),
        (25, 28, "runnable", 1),
        (28, 40, "running", 1),
    ]


def test_a_migration_of_a_sleeping_thread_changes_nothing_until_it_wakes(kernel, states_of):
    kernel.switch(10, 0, A, 0)
    kernel.migrate(20, 1, A, orig=0, dest=1)
    kernel.wake(21, 1, A)
    kernel.switch(22, 1, 0, A)
    assert states_of(kernel, tid=A) == [(10, 21, "blocked", None), (21, 22, "runnable", 1)]


def test_state_before_the_first_event_is_unknown(kernel, states_of):
    kernel.switch(10, 0, 0, B)
    kernel.wake(15, 0, C)
    kernel.switch(20, 0, B, A, state=PREEMPTED)
    kernel.switch(30, 0, A, C)
    kernel.switch(40, 0, C, 0)
    assert states_of(kernel, tid=A)[0] == (20, 30, "running", 0)
    assert states_of(kernel, tid=C)[0] == (15, 30, "runnable", 0)


def test_wakeup_of_a_thread_found_running_is_ignored(kernel, states_of):
    kernel.wake(5, 1, A, target=0)
    kernel.switch(10, 0, A, 0)
    kernel.switch(20, 0, 0, B)
    assert states_of(kernel, tid=A) == [(10, 20, "blocked", None)]


def test_a_wakeup_of_a_running_thread_changes_nothing(kernel, states_of):
    kernel.switch(10, 0, 0, A)
    kernel.wake(15, 1, A, target=0)
    kernel.switch(20, 0, A, 0, state=PREEMPTED)
    kernel.wake(22, 1, A, target=0)
    kernel.switch(25, 0, 0, A)
    assert states_of(kernel, tid=A) == [(10, 20, "running", 0), (20, 25, "runnable", 0)]


def test_cpus_that_switch_simultaneously(kernel, states_of):
    """A moves from CPU 1 to CPU 0 within one clock tick; B moves the other way."""
    kernel.switch(10, 1, 0, A)
    kernel.switch(10, 0, 0, B)
    kernel.switch(20, 1, A, B, state=0)
    kernel.switch(20, 0, B, A, state=0)
    kernel.switch(30, 0, A, 0)
    kernel.switch(30, 1, B, 0)
    assert states_of(kernel) == [
        (A, 10, 20, "running", 1),
        (A, 20, 30, "running", 0),
        (B, 10, 20, "running", 0),
        (B, 20, 30, "running", 1),
    ]


def test_run_shorter_than_a_clock_tick(kernel, states_of):
    kernel.switch(10, 0, 0, A)
    kernel.switch(20, 0, A, 0)
    kernel.wake(30, 0, A)
    kernel.switch(40, 0, 0, A)
    kernel.switch(40, 0, A, B)
    kernel.switch(50, 0, B, 0)
    assert states_of(kernel, tid=A)[1:] == [
        (20, 30, "blocked", None),
        (30, 40, "runnable", 0),
        (40, 50, "blocked", None),
    ]


def test_dead_thread_has_no_state_and_its_tid_is_reused(kernel, states_of):
    kernel.switch(10, 0, 0, A)
    kernel.switch(20, 0, A, 0, state=DEAD)
    kernel.wake(60, 0, A, event=WAKEUP_NEW)
    kernel.switch(70, 0, 0, A)
    kernel.switch(80, 0, A, 0)
    assert states_of(kernel, tid=A) == [(10, 20, "running", 0), (60, 70, "runnable", 0), (70, 80, "running", 0)]


def test_waking_is_used_without_wakeup_events(kernel, states_of):
    kernel.switch(10, 0, A, 0)
    kernel.wake(20, 0, A, event=WAKING)
    kernel.switch(30, 0, 0, A)
    assert states_of(kernel, tid=A) == [(10, 20, "blocked", None), (20, 30, "runnable", 0)]


def test_waking_is_ignored_with_wakeup_events(kernel, states_of):
    kernel.switch(10, 0, A, 0)
    kernel.wake(20, 0, A, event=WAKING)
    kernel.wake(22, 0, A)
    kernel.switch(30, 0, 0, A)
    assert states_of(kernel, tid=A) == [(10, 22, "blocked", None), (22, 30, "runnable", 0)]


def test_loss_ends_states_until_the_next_event(kernel, states_of):
    kernel.switch(10, 0, 0, A)
    kernel.switch(20, 0, A, 0)
    kernel.switch(30, 0, 0, B)
    kernel.lose(0, 3)
    kernel.switch(50, 0, C, A)
    kernel.switch(70, 0, A, 0)
    kernel.lose(0, 1)
    kernel.switch(80, 0, 0, C)
    kernel.switch(90, 0, C, 0)
    kernel.switch(95, 0, 0, C)
    kernel.switch(99, 0, C, 0)
    assert states_of(kernel, tid=A) == [(10, 20, "running", 0), (20, 30, "blocked", None)]
    assert states_of(kernel, tid=B) == []
    assert states_of(kernel, tid=C) == []


def test_states_are_known_between_two_losses(kernel, states_of):
    kernel.switch(10, 0, 0, A)
    kernel.lose(0, 3)
    kernel.switch(20, 0, 0, A)
    kernel.switch(30, 0, A, 0)
    kernel.streams[1] = []
    kernel.switch(40, 1, 0, B)
    kernel.switch(45, 1, B, 0)
    kernel.switch(60, 1, 0, B)
    assert states_of(kernel) == [(B, 40, 45, "running", 1), (B, 45, 60, "blocked", None)]


def test_contradictory_switch_drops_the_previous_state(kernel, states_of):
    """The thread leaves a CPU that it never entered: events are missing without a reported loss."""
    kernel.switch(10, 0, A, 0)
    kernel.switch(30, 1, A, 0)
    kernel.switch(40, 1, 0, B)
    assert states_of(kernel, tid=A) == [(30, 40, "blocked", None)]


def test_hosts_with_equal_thread_numbers(states_of):
    one, two = KernelTrace("one"), KernelTrace("two")
    one.switch(10, 0, 0, A)
    one.switch(20, 0, A, 0)
    two.switch(12, 0, 0, A)
    two.switch(19, 0, A, 0)
    states_of(one, two)
    found = build_thread_states(read_trace(states_of.directory))
    assert [(row[0], row[3] - EPOCH_NS) for row in found.iter_rows()] == [("one", 10), ("two", 12)]


def test_user_space_with_and_without_kernel_events(kernel, tmp_path):
    event = Event("sched_switch", 1, {"_number": Int(32)})  # not the kernel's
    TraceBuilder([event]).write(tmp_path / "ust", {"s": [Packet([Record(event, 15, {"_number": 1})])]})
    assert build_thread_states(read_trace(tmp_path)).is_empty()
    kernel.switch(10, 0, 0, A)
    kernel.switch(20, 0, A, 0)
    kernel.write(tmp_path / "session")
    assert len(build_thread_states(read_trace(tmp_path / "session"))) == 1
