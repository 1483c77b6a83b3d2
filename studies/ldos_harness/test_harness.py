"""The seed's conditions, each with ten reaches; its flood of Python publishers needs ROS 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FLOOD = Path(__file__).with_name("flood.py")


@pytest.mark.ldos_scenarios("alone", "busy", "flooded", "flooded_and_read", "one_cpu")
def test_reach(ldos_scenario):
    ldos_scenario()


@pytest.fixture
def publishers():
    pytest.importorskip("rclpy", reason="flood.py is a node of rclpy")
    started = [subprocess.Popen([sys.executable, str(FLOOD), f"/flood_topic_{number}"]) for number in range(1, 5)]
    yield started
    for each in started:
        each.terminate()
        each.wait(10)


@pytest.mark.python_flood
def test_reach_under_python_publishers(publishers, ldos_stack, ldos_trials, ldos_gate):
    trials = ldos_trials(ldos_stack)
    assert [each.poll() for each in publishers] == [None] * 4  # they ran all the time
    ldos_gate.check(trials)
