"""Due times of timers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ldos.trace.execution.columns import NEVER
from pytest_ldos.trace.flow.arrivals import timer_due_ns
from pytest_ldos.trace.flow.graph import Runs
from tests.builders.ros2 import Recording

PERIOD_NS = 10_000


def due(starts_ns, *, period_ns=PERIOD_NS):
    """Due times of a timer's runs, and of a service's run after them."""
    recording = Recording()
    process = recording.process()
    node, thread = process.node("/node"), process.thread()
    timer, service = node.timer(period_ns), node.service("/serve")
    for start in starts_ns:
        with thread.at(start).running(timer):
            pass
    with thread.spend(100).running(service):
        pass
    model = recording.model()
    return timer_due_ns(model, Runs(model))


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, PERIOD_NS - 1),
    st.lists(st.integers(0, 300), min_size=6, max_size=70),
    st.lists(st.integers(0, 9_500), min_size=4, max_size=4),
    st.integers(0, 19),
)
def test_run_is_due_on_the_grid_of_punctual_runs(phase_ns, small, big, first):
    """All runs are a little late; one in 20 is late by up to nearly a period."""
    late = np.array(small)
    where = np.arange(first, len(late), 20)
    late[where] += np.array(big)[: len(where)]
    true_ns = 1_000_000 + phase_ns + PERIOD_NS * np.arange(len(late))
    found = due((true_ns + late).tolist())
    assert found[-1] == NEVER
    assert (np.abs(found[:-1] - true_ns) <= 300).all()


@pytest.mark.parametrize("punctual", [0, 10, 39])
def test_punctual_run_gives_the_lateness_of_others(punctual):
    late = np.full(40, 1_200)
    late[punctual] = 0
    true_ns = 1_000_000 + PERIOD_NS * np.arange(40)
    found = due((true_ns + late).tolist())[:-1]
    together = np.arange(40) // 20 == punctual // 20
    assert (found[together] == true_ns[together]).all()
    assert (found[~together] == true_ns[~together] + 1_200).all()


def test_single_run_is_on_time():
    assert due([50_000]).tolist() == [50_000, NEVER]


def test_timer_without_period_is_always_on_time():
    assert due([50_000, 50_700], period_ns=0).tolist() == [NEVER] * 3
