"""The CPU thief: its share, and its end."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from pytest_ldos.host.cpu import THIEF, thief_commands
from pytest_ldos.host.processes import ProcessGroup

SHARE = 0.3
WATCHED_S = 0.5

PARENT = """
import sys, time
from pathlib import Path
from pytest_ldos.host.cpu import thief_commands
from pytest_ldos.host.processes import ProcessGroup

group = ProcessGroup(log_directory=Path(sys.argv[1]))
for name, command in thief_commands(0.05).items():
    print(group.start(name, command).pid, flush=True)
print("all", flush=True)
time.sleep(60)
"""


def taken_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def await_thief(pid: int) -> psutil.Process:
    """Waits until it has begun to steal, after the interpreter's start."""
    process = psutil.Process(pid)
    deadline = time.monotonic() + 60
    while process.name() != THIEF:
        assert time.monotonic() < deadline, "it never began"
        time.sleep(0.01)
    return process


def test_one_thief_per_cpu_and_none_for_no_share():
    assert thief_commands(0.0) == {}
    assert set(thief_commands(0.5)) == {f"{THIEF}_{cpu}" for cpu in os.sched_getaffinity(0)}


@pytest.mark.measures_time
def test_thief_uses_exactly_its_share(tmp_path):
    group = ProcessGroup(log_directory=tmp_path)
    name, command = next(iter(thief_commands(SHARE).items()))
    try:
        thief = await_thief(group.start(name, command).pid)
        before, began = taken_s(thief), time.monotonic()
        time.sleep(WATCHED_S)  # measures a rate
        share = (taken_s(thief) - before) / (time.monotonic() - began)
        precedes = os.sched_getscheduler(thief.pid) == os.SCHED_FIFO
        assert thief.cpu_affinity() == [int(name.removeprefix(f"{THIEF}_"))]
        assert thief.num_threads() == 1
        assert os.getsid(thief.pid) == os.getsid(0)
    finally:
        group.stop()
    assert share < SHARE + 0.08
    assert share > (SHARE - 0.1 if precedes else 0)
    assert not thief.is_running()


def test_thief_ends_with_a_killed_parent(tmp_path):
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        lines = [line.strip() for line in iter(parent.stdout.readline, "all\n")]
        thieves = [psutil.Process(int(line)) for line in lines]
        assert len(thieves) == len(os.sched_getaffinity(0))
        parent.kill()
    _, alive = psutil.wait_procs(thieves, timeout=60)
    assert alive == []
