"""Counters of processes, if this kernel has them."""

from __future__ import annotations

import mmap
import os
import subprocess

import pytest

from pytest_ldos.host import counters as counters_module
from pytest_ldos.host.counters import Counters, Event


def test_events_of_a_process_are_counted():
    counters = Counters(Event.PAGE_FAULTS, [os.getpid()])
    if counters.reason:
        pytest.skip(f"page faults cannot be counted: {counters.reason}")
    before = counters.read()
    with mmap.mmap(-1, 1000 * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(1000):
            memory[page * mmap.PAGESIZE] = 1
    assert counters.read() - before >= 1000
    counters.close()
    counters.close()


def test_ended_process_cannot_be_counted():
    process = subprocess.Popen(["true"])
    process.wait()
    counters = Counters(Event.PAGE_FAULTS, [os.getpid(), process.pid])
    assert counters.read() is None
    assert counters.reason


def test_unknown_system_call_is_reported(monkeypatch):
    monkeypatch.setattr(counters_module, "_SYSCALLS", {})
    counters = Counters(Event.CACHE_MISSES, [os.getpid()])
    assert counters.read() is None
    assert "not implemented" in counters.reason


def test_counters_are_available_or_have_a_reason():
    counters = Counters(Event.CACHE_MISSES, [os.getpid()])
    assert (counters.read() is None) == bool(counters.reason)
    counters.close()
