"""Faults of resources that nodes can be given, in this process."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time

import pytest

from pytest_ldos.host.process_resources import ResourceMeter
from pytest_ldos.robot.stack.embedded.move_group import Leak
from pytest_ldos.robot.stack.embedded.state_publisher import CpuWaste

MB = 1_000_000


def compute(seconds: float) -> None:
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


@pytest.mark.parametrize("share", [0.2, 1.5])
def test_waste_is_a_share_of_other_cpu_time(share):
    waste, began = CpuWaste(share), time.process_time()
    for _ in range(10):
        compute(0.02)
        waste.waste()
    assert (time.process_time() - began) / 0.2 == pytest.approx(1 + share, rel=0.1)


def test_no_time_is_wasted_by_default():
    waste = CpuWaste(0.0)
    compute(0.02)
    began = time.thread_time()
    waste.waste()
    assert time.thread_time() - began < 0.005


LEAKING = f"""
from {Leak.__module__} import Leak
leaks = {{"20": Leak(20.0), "0": Leak(0.0)}}
print(flush=True)
while True:
    leaks[input()].leak()
    print(flush=True)
"""
"""In a process of its own: one that runs tests may return other memory meanwhile."""


def test_leaked_memory_is_resident_and_stays():
    command = [sys.executable, "-c", LEAKING]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(process.kill)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        meter = stack.enter_context(ResourceMeter(lambda: {process.pid: "planner"}))
        grown = []
        for size in ("0", "20", "20"):
            process.stdin.write(f"{size}\n")
            process.stdin.flush()
            process.stdout.readline()
            grown.append(meter.measure().processes[0].grown_bytes)
    assert grown[2] - grown[0] == pytest.approx(40 * MB, abs=MB)
