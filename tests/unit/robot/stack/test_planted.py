"""Faults of resources that nodes can be given, in this process."""

from __future__ import annotations

import os
import time

import pytest

from pytest_ldos.host.process_resources import ResourceMeter
from pytest_ldos.robot.stack.embedded.planted import CpuWaste, Leak

MB = 1_000_000


def compute(seconds: float) -> None:
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


@pytest.mark.parametrize("share", [0.2, 1.5])
def test_waste_is_a_share_of_what_is_used_otherwise(share):
    waste, began = CpuWaste(share), time.process_time()
    for _ in range(10):
        compute(0.02)
        waste.waste()
    assert (time.process_time() - began) / 0.2 == pytest.approx(1 + share, rel=0.1)


def test_nothing_is_wasted_unasked():
    waste = CpuWaste(0.0)
    compute(0.02)
    began = time.thread_time()
    waste.waste()
    assert time.thread_time() - began < 0.005


def test_a_leak_is_memory_that_exists_and_stays():
    leak, nothing = Leak(20.0), Leak(0.0)
    with ResourceMeter(lambda: {os.getpid(): "planner"}) as meter:
        nothing.leak()
        unchanged = meter.measure().processes[0].grown_bytes
        leak.leak()
        leak.leak()
        assert meter.measure().processes[0].grown_bytes - unchanged == pytest.approx(40 * MB, abs=MB)
