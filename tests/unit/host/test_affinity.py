"""Affinity is set for every thread of every process, and restored."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest

from pytest_ldos.host.cpu import confine, describe_cpus, our_cpus, read_affinities, release, with_descendants

THREADED = """
import subprocess, sys, threading, time
started = threading.Barrier(4)
def rest():
    started.wait()
    time.sleep(600)
for _ in range(3):
    threading.Thread(target=rest, daemon=True).start()
started.wait()
child = subprocess.Popen(["sleep", "600"])
print(child.pid, flush=True)
for line in sys.stdin:
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    late = subprocess.Popen(["sleep", "600"])
    print(late.pid, flush=True)
"""

needs_two_cpus = pytest.mark.skipif(len(our_cpus()) < 2, reason="one CPU cannot be distinguished from all")


@pytest.fixture
def threaded():
    process = subprocess.Popen(
        [sys.executable, "-c", THREADED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
    )
    yield process
    os.killpg(process.pid, 9)
    process.communicate()


def test_cpu_lists_use_the_kernels_notation():
    assert describe_cpus({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8"
    assert describe_cpus(()) == ""


@needs_two_cpus
def test_all_threads_and_later_ones_are_confined(threaded):
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
    release(pids, before)
    assert set(read_affinities(pids()).values()) == {our_cpus()}


@needs_two_cpus
def test_thread_with_fewer_cpus_keeps_them(threaded):
    child = int(threaded.stdout.readline())
    narrow, others = frozenset([min(our_cpus())]), frozenset(our_cpus())
    os.sched_setaffinity(child, narrow)
    before = confine(lambda: [threaded.pid, child], others)
    assert os.sched_getaffinity(child) == narrow
    os.sched_setaffinity(child, others)
    release(lambda: [threaded.pid, child], before)
    assert os.sched_getaffinity(child) == narrow


def test_ended_processes_are_left_out(threaded):
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert with_descendants([ended.pid]) == []
    assert read_affinities([ended.pid]) == {}
    assert confine(lambda: [ended.pid], our_cpus()) == {}
    release(lambda: [threaded.pid], {})


@needs_two_cpus
def test_failed_confinement_changes_nothing(threaded, monkeypatch):
    """Simulates a kernel that refuses the last thread."""
    child, set_affinity = int(threaded.stdout.readline()), os.sched_setaffinity

    def refuse(tid: int, cpus: frozenset[int]) -> None:
        if tid == child and len(cpus) == 1:
            raise PermissionError
        set_affinity(tid, cpus)

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    with pytest.raises(PermissionError):
        confine(lambda: [threaded.pid, child], frozenset([min(our_cpus())]))
    assert set(read_affinities([threaded.pid, child]).values()) == {our_cpus()}


@needs_two_cpus
def test_thread_created_during_release_is_released(threaded, monkeypatch):
    threaded.stdout.readline()
    pids = partial(with_descendants, [threaded.pid])
    before = confine(pids, frozenset([min(our_cpus())]))
    set_affinity, made = os.sched_setaffinity, []

    def make_another_first(tid: int, cpus: frozenset[int]) -> None:
        if not made:
            threaded.stdin.write("\n")
            threaded.stdin.flush()
            made.append(int(threaded.stdout.readline()))
        set_affinity(tid, cpus)

    monkeypatch.setattr(os, "sched_setaffinity", make_another_first)
    release(pids, before)
    assert made[0] in pids()
    assert set(read_affinities(pids()).values()) == {our_cpus()}
