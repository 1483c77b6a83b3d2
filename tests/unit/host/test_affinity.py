"""Affinity reaches every thread of every process, and is given back."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest

from pytest_ldos.host.affinity import confine, describe_cpus, our_cpus, read_affinities, release, with_descendants

THREADED = """
import subprocess, sys, threading, time
started = threading.Barrier(4)
def rest():
    started.wait()
    time.sleep(60)
for _ in range(3):
    threading.Thread(target=rest, daemon=True).start()
started.wait()
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
for line in sys.stdin:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    late = subprocess.Popen(["sleep", "60"])
    print(late.pid, flush=True)
"""

needs_two_cpus = pytest.mark.skipif(len(our_cpus()) < 2, reason="one CPU cannot be told from all")


@pytest.fixture
def threaded():
    process = subprocess.Popen(
        [sys.executable, "-c", THREADED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
    )
    yield process
    os.killpg(process.pid, 9)
    process.communicate()


def test_lists_of_cpus_are_written_as_the_kernel_does():
    assert describe_cpus({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8"
    assert describe_cpus(()) == ""


@needs_two_cpus
def test_every_thread_is_confined_and_what_comes_later_too(threaded):
    child = int(threaded.stdout.readline())
    one = frozenset([max(our_cpus())])
    pids = partial(with_descendants, [threaded.pid])
    before = confine(pids, one)
    assert len(before) == 5
    assert {thread.pid for thread in before} == {threaded.pid, child}
    threaded.stdin.write("\n")
    threaded.stdin.flush()
    late = int(threaded.stdout.readline())
    found = read_affinities(pids())
    assert len(found) == 7
    assert late in {thread.pid for thread in found}
    assert set(found.values()) == {one}
    release(pids(), before)
    assert set(read_affinities(pids()).values()) == {our_cpus()}


@needs_two_cpus
def test_a_thread_that_had_fewer_cpus_keeps_and_gets_back_its_own(threaded):
    child = int(threaded.stdout.readline())
    narrow, others = frozenset([min(our_cpus())]), frozenset(our_cpus())
    os.sched_setaffinity(child, narrow)
    before = confine(lambda: [threaded.pid, child], others)
    assert os.sched_getaffinity(child) == narrow
    os.sched_setaffinity(child, others)
    release([threaded.pid, child], before)
    assert os.sched_getaffinity(child) == narrow


def test_what_has_ended_is_left_out(threaded):
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert with_descendants([ended.pid]) == []
    assert read_affinities([ended.pid]) == {}
    assert confine(lambda: [ended.pid], our_cpus()) == {}
    release([threaded.pid], {})
