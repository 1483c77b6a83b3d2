"""Use of resources by real processes: each does what it is told to, between two readings."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pytest_ldos.host import process_resources
from pytest_ldos.host.process_resources import ProcessUse, ResourceMeter

MB = 1_000_000
SERVANT = """
import sys, threading, time
kept = []
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
KEEP = f"kept.append(b'x' * {20 * MB})"
SPIN = "began = time.thread_time()\nwhile time.thread_time() < began + 0.2: pass"


class Servant:
    """A process that executes what it is told."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", SERVANT]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.do("pass")

    @property
    def pid(self) -> int:
        return self.process.pid

    def do(self, code: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"exec({code!r})\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture
def servant() -> Iterator[Servant]:
    made = Servant()
    yield made
    made.end()


@pytest.fixture
def successor() -> Iterator[Servant]:
    made = Servant()
    yield made
    made.end()


def only(meter: ResourceMeter) -> ProcessUse:
    (used,) = meter.measure().processes
    return used


def test_cpu_time_is_that_of_the_span(servant):
    servant.do(SPIN)
    meter = ResourceMeter(lambda: {servant.pid: "servant"})
    idle = only(meter)
    assert idle.cpu_ns < 50 * MB  # as nanoseconds
    servant.do(SPIN)
    used = only(meter)
    assert 190 * MB < used.cpu_ns < 400 * MB
    assert (used.name, used.has_begun) == ("servant", False)


def test_a_peak_is_seen_although_it_is_over_and_an_earlier_one_is_not(servant):
    servant.do(f"x = b'x' * {60 * MB}; del x")
    meter = ResourceMeter(lambda: {servant.pid: "servant"})
    before = only(meter).peak_bytes
    servant.do(f"x = b'x' * {40 * MB}; del x")
    used = only(meter)
    assert used.is_peak_known
    assert 39 * MB < used.peak_bytes - before < 42 * MB
    assert abs(used.grown_bytes) < 2 * MB
    assert used.resident_bytes > used.peak_bytes


def test_a_leak_grows_from_span_to_span(servant):
    found = []
    for _ in range(3):
        meter = ResourceMeter(lambda: {servant.pid: "servant"})
        servant.do(KEEP)
        found.append(only(meter))
    assert all(19 * MB < each.grown_bytes < 22 * MB for each in found)
    peaks = [each.peak_bytes for each in found]
    assert all(19 * MB < after - before < 22 * MB for before, after in itertools.pairwise(peaks))


def test_switches_and_faults_are_counted(servant):
    meter = ResourceMeter(lambda: {servant.pid: "servant"})
    servant.do("for _ in range(100): time.sleep(0.0001)")
    servant.do(KEEP)
    used = only(meter)
    assert 100 <= used.switches < 300
    assert used.faults >= 20 * MB // os.sysconf("SC_PAGESIZE") // 512  # where pages are huge


def test_threads_have_names_and_numbers_of_their_own(servant):
    servant.do("go, over = threading.Event(), threading.Event()")
    servant.do(
        "def run():\n"
        "    open('/proc/thread-self/comm', 'w').write('worker')\n"
        "    over.set(); go.wait(); over.clear()\n"
        "    began = time.thread_time()\n"
        "    while time.thread_time() < began + 0.2: pass\n"
        "    over.set(); threading.Event().wait()\n"
        "threading.Thread(target=run, daemon=True).start(); over.wait()"
    )
    meter = ResourceMeter(lambda: {servant.pid: "servant"})
    servant.do("over.clear(); go.set(); over.wait()")
    by_name = {each.name: each for each in only(meter).threads}
    assert len(by_name) == 2
    assert by_name["worker"].cpu_ns > 190 * MB


def test_what_a_process_starts_counts_as_its_own(servant):
    meter = ResourceMeter(lambda: {servant.pid: "servant"})
    servant.do("import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1)")
    used = meter.measure()
    assert used.names == ["servant"]
    assert [each.has_begun for each in used.processes] == [False, True]
    servant.do("child.communicate()")


def test_a_process_that_restarts_counts_from_its_start(servant, successor):
    running = {servant.pid: "planner"}
    meter = ResourceMeter(lambda: dict(running))
    running.clear()
    running[successor.pid] = "planner"
    servant.end()
    successor.do(SPIN)
    used = meter.measure()
    (planner,) = used.processes
    assert (planner.pid, planner.has_begun) == (successor.pid, True)
    assert planner.cpu_ns > 190 * MB
    assert used.ended == ()


def test_a_process_that_ends_is_named(servant):
    running = {servant.pid: "planner"}
    meter = ResourceMeter(lambda: dict(running))
    servant.end()
    assert meter.measure().processes == ()
    assert meter.measure().ended == ("planner",)
    assert meter.measure().names == ["planner"]


def test_where_the_peak_cannot_be_reset_it_is_that_of_the_ends(servant, monkeypatch):
    servant.do(f"x = b'x' * {60 * MB}; del x")
    monkeypatch.setattr(process_resources, "_reset_peak", lambda pid: False)
    used = only(ResourceMeter(lambda: {servant.pid: "servant"}))
    assert not used.is_peak_known
    assert used.resident_bytes < 60 * MB


def test_the_peak_of_a_process_that_is_gone_cannot_be_reset():
    assert process_resources._reset_peak(os.getpid())
    assert not process_resources._reset_peak(2**22 + 1)
