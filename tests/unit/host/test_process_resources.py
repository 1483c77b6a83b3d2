"""Resource use of real processes, which execute commands between two readings."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from pytest_ldos.host import process_resources
from pytest_ldos.host.process_resources import Names, ProcessUse, ResourceMeter, TaskExits

MB = 1_000_000
with TaskExits() as _heard:
    KEEPS_RECORDS = _heard.is_whole
SERVANT = """
import resource, sys, threading, time
def switches(who=resource.RUSAGE_SELF):
    used = resource.getrusage(who)
    return used.ru_nvcsw + used.ru_nivcsw
kept = []
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
KEEP = f"kept.append(b'x' * {20 * MB})"
SPIN = "began = time.thread_time()\nwhile time.thread_time() < began + 0.2: pass"
SLEEP = "enough = switches({who}) + {count}\nwhile switches({who}) < enough: time.sleep(0.0001)"
"""Sleeps until the kernel has counted the given number of switches; on a busy machine, a late sleep is no switch."""


class Servant:
    """A process that executes expressions on request."""

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

    def sleep(self, count: int) -> None:
        self.do(SLEEP.format(who="", count=count))

    def tell(self, expression: str) -> float:
        """Evaluates an expression in the process."""
        assert self.process.stdout is not None
        value = self.do(f"print({expression}, flush=True)")
        self.process.stdout.readline()
        return float(value)

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


@pytest.fixture
def meter_of() -> Iterator[Callable[[Callable[[], Names]], ResourceMeter]]:
    """Creates meters, and closes them."""
    with ExitStack() as made:
        yield lambda processes: made.enter_context(ResourceMeter(processes))


def only(meter: ResourceMeter) -> ProcessUse:
    (used,) = meter.measure().processes
    return used


def test_cpu_time_covers_the_span(servant, meter_of):
    servant.do(SPIN)
    before_s = servant.tell("time.process_time()")
    meter = meter_of(lambda: {servant.pid: "servant"})
    began_s = servant.tell("time.process_time()")
    servant.do(SPIN)
    ended_s = servant.tell("time.process_time()")
    used = only(meter)
    after_s = servant.tell("time.process_time()")
    assert ended_s - began_s >= 0.2
    assert (ended_s - began_s) * 1e9 <= used.cpu_ns <= (after_s - before_s) * 1e9
    assert (used.name, used.has_begun) == ("servant", False)


def test_peak_within_the_span_counts_and_an_earlier_one_does_not(servant, meter_of):
    servant.do(f"x = b'x' * {60 * MB}; del x")
    meter = meter_of(lambda: {servant.pid: "servant"})
    before = only(meter).peak_bytes
    servant.do(f"x = b'x' * {40 * MB}; del x")
    used = only(meter)
    assert used.is_peak_known
    assert 39 * MB < used.peak_bytes - before < 42 * MB
    assert abs(used.grown_bytes) < 2 * MB
    assert used.resident_bytes > used.peak_bytes


def test_leak_grows_from_span_to_span(servant, meter_of):
    found = []
    for _ in range(3):
        meter = meter_of(lambda: {servant.pid: "servant"})
        servant.do(KEEP)
        found.append(only(meter))
    assert all(19 * MB < each.grown_bytes < 22 * MB for each in found)
    peaks = [each.peak_bytes for each in found]
    assert all(19 * MB < after - before < 22 * MB for before, after in itertools.pairwise(peaks))


def test_switches_and_faults_are_counted(servant, meter_of):
    before = servant.tell("switches()")
    meter = meter_of(lambda: {servant.pid: "servant"})
    servant.sleep(100)
    servant.do(KEEP)
    used = only(meter)
    assert 100 <= used.switches <= servant.tell("switches()") - before
    assert used.faults >= 20 * MB // os.sysconf("SC_PAGESIZE") // 512  # with huge pages


def test_threads_are_counted_by_name(servant, meter_of):
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
    meter = meter_of(lambda: {servant.pid: "servant"})
    servant.do("over.clear(); go.set(); over.wait()")
    by_name = {each.name: each for each in only(meter).threads}
    assert len(by_name) == 2
    assert by_name["worker"].cpu_ns > 190 * MB


def test_children_count_for_their_parent(servant, meter_of):
    meter = meter_of(lambda: {servant.pid: "servant"})
    servant.do("import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1)")
    used = meter.measure()
    assert used.names == ["servant"]
    assert [each.has_begun for each in used.processes] == [False, True]
    servant.do("child.communicate()")


needs_exits = pytest.mark.skipif(not KEEPS_RECORDS, reason="this kernel keeps no records of ended threads")


@needs_exits
def test_restarted_process_counts_before_and_after(servant, successor, meter_of):
    servant.do(SPIN)
    servant.sleep(2000)
    servant.do(KEEP)
    running = {servant.pid: "planner"}
    before_s = servant.tell("time.process_time()")
    meter = meter_of(lambda: dict(running))
    servant.do(SPIN)
    servant.sleep(100)
    servant.do(f"x = b'x' * {40 * MB}; del x")
    whole, whole_s = servant.tell("switches()"), servant.tell("time.process_time()")
    running.clear()
    running[successor.pid] = "planner"
    servant.end()
    successor.do(SPIN)
    used = meter.measure()
    first, second = sorted(used.processes, key=lambda each: each.has_begun)
    assert (first.pid, first.has_begun, first.has_ended) == (servant.pid, False, True)
    assert (second.pid, second.has_begun, second.has_ended) == (successor.pid, True, False)
    assert 190 * MB < first.cpu_ns < (whole_s - before_s + 0.2) * 1e9, "what it used before the span is not of it"
    assert second.cpu_ns > 190 * MB
    assert 100 <= first.switches < whole, "nor are the 2000 switches before"
    assert first.faults >= 40 * MB // os.sysconf("SC_PAGESIZE") // 512
    assert 59 * MB < first.peak_bytes < 90 * MB
    assert used.lost == {}


@needs_exits
def test_process_within_the_span_counts(servant, meter_of):
    before_s = servant.tell("time.process_time()")
    meter = meter_of(lambda: {servant.pid: "servant"})
    child = f"import threading, time\n{SPIN}"
    servant.do(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    parent, ended = meter.measure().processes
    assert (ended.name, ended.has_begun, ended.has_ended) == ("servant", True, True)
    assert ended.cpu_ns > 190 * MB
    assert parent.cpu_ns <= (servant.tell("time.process_time()") - before_s) * 1e9


@needs_exits
def test_short_lived_process_of_the_stack_counts_by_name():
    """For example, `launch` restarts it repeatedly; its parent does not belong to the stack."""
    started: dict[int, str] = {}
    with ResourceMeter(dict, lambda: started) as meter:
        for _ in range(2):
            with subprocess.Popen([sys.executable, "-c", f"import time\n{SPIN}"]) as mortal:
                started[mortal.pid] = "mortal"
        used = meter.measure()
    assert [(each.name, each.has_begun, each.has_ended) for each in used.processes] == [("mortal", True, True)] * 2
    assert sum(each.cpu_ns for each in used.processes) > 2 * 190 * MB


@needs_exits
def test_ended_thread_counts(servant, meter_of):
    meter = meter_of(lambda: {servant.pid: "servant"})
    servant.do(
        "def run():\n"
        "    open('/proc/thread-self/comm', 'w').write('worker')\n"
        f"    exec({SLEEP.format(who='resource.RUSAGE_THREAD', count=100)!r})\n"
        "one = threading.Thread(target=run); one.start(); one.join()"
    )
    used = only(meter)
    assert used.switches >= 100
    assert next(each for each in used.threads if each.name == "worker").switches >= 100


def test_use_of_an_ended_process_is_lost_without_exit_records(servant, successor, meter_of, monkeypatch):
    monkeypatch.setattr(process_resources, "_listen", refuse)
    running = {servant.pid: "planner"}
    meter = meter_of(lambda: dict(running))
    gone = servant.pid
    running.clear()
    running[successor.pid] = "planner"
    servant.end()
    used = meter.measure()
    assert [each.pid for each in used.processes] == [successor.pid]
    assert used.lost == {gone: "planner"}
    assert used.names == ["planner"]


@needs_exits
def test_dropped_exit_records_are_noticed(servant, meter_of, monkeypatch):
    """The buffer fits about two records; a hundred threads end."""
    monkeypatch.setattr(process_resources, "_BUFFER", 2048)
    meter = meter_of(lambda: {servant.pid: "servant"})
    servant.do("for _ in range(100): one = threading.Thread(target=len, args=('',)); one.start(); one.join()")
    pid = servant.pid
    servant.end()
    used = meter.measure()
    assert used.lost == {pid: "servant"}


def refuse():
    raise PermissionError(1, "Operation not permitted")


def test_peak_without_reset_is_that_of_the_ends(servant, monkeypatch, meter_of):
    servant.do(f"x = b'x' * {60 * MB}; del x")
    monkeypatch.setattr(process_resources, "_reset_peak", lambda pid: False)
    used = only(meter_of(lambda: {servant.pid: "servant"}))
    assert not used.is_peak_known
    assert used.resident_bytes < 60 * MB


def test_peak_of_an_ended_process_cannot_be_reset():
    assert process_resources._reset_peak(os.getpid())
    assert not process_resources._reset_peak(2**22 + 1)
