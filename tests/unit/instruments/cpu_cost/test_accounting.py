"""The ladder's resource usage, compared with known CPU time."""

from __future__ import annotations

import os
import sys
import time
from resource import RUSAGE_THREAD, getrusage

import pytest

from pytest_ldos.base.text import NS_PER_MS
from pytest_ldos.host.counters import Event, process_cpu_ns
from pytest_ldos.host.kept import AnsweringChild, ChildFailed, answer_lines
from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.instruments.cpu_cost.exchange_program import measure
from pytest_ldos.instruments.cpu_cost.ladder import Exchange, make_exchange, why_not_counted

ANSWER = dict.fromkeys(
    ("ticks", "published", "received", "wall_ns", "user_ns", "system_ns", "voluntary", "involuntary"), 1
)
BURNER = """
import json, sys, time
from pytest_ldos.host.kept import say
from pytest_ldos.instruments.cpu_cost.exchange_program import measure
class Burn:
    def exchange(self):
        end = time.process_time() + 0.2
        while time.process_time() < end: pass
        return 1, 1
for line in sys.stdin:
    say(measure(Burn(), 1))
"""
MOVER = """
import os, sys, threading
from pytest_ldos.host.kept import say
from pytest_ldos.instruments.cpu_cost.exchange_program import measure
class Move:
    def exchange(self):
        thread = threading.Thread(target=self.move)
        thread.start()
        thread.join()
        return 1, 1
    def move(self):
        first, second = sorted(os.sched_getaffinity(0))[:2]
        for number in range(21):
            os.sched_setaffinity(0, {first if number % 2 else second})
for line in sys.stdin:
    say(measure(Move(), 1))
"""
TICK_NS = 10 * NS_PER_MS
"""Tolerance, because user and system time are read separately from their sum."""
NO_MIGRATIONS = why_not_counted(Event.CPU_MIGRATIONS, os.getpid())


class Burn:
    """Uses the given CPU time, then sleeps repeatedly."""

    def __init__(self, cpu_s: float, sleeps: int = 0) -> None:
        self._cpu_s, self._sleeps = cpu_s, sleeps

    def is_matched(self) -> bool:
        return False

    def exchange(self) -> tuple[int, int]:
        end_s = time.thread_time() + self._cpu_s
        while time.thread_time() < end_s:
            pass
        enough = left_cpu() + self._sleeps
        while left_cpu() < enough:  # a thread that is preempted for as long does not switch voluntarily
            time.sleep(0.001)
        return 1, 2


def left_cpu() -> int:
    """Voluntary context switches of this thread."""
    return getrusage(RUSAGE_THREAD).ru_nvcsw


def test_used_cpu_time_is_measured():
    before_ns = time.process_time_ns()
    found = Exchange.of(measure(Burn(0.2), 1))
    assert 200 * NS_PER_MS - TICK_NS <= found.cpu_ns <= time.process_time_ns() - before_ns + TICK_NS
    assert found.wall_ns >= 200 * NS_PER_MS
    assert (found.ticks, found.published, found.received) == (1, 1, 2)


def test_sleep_costs_only_switches():
    before_ns = time.process_time_ns()
    found = Exchange.of(measure(Burn(0.0, sleeps=50), 1))
    assert found.voluntary >= 50
    assert found.cpu_ns <= time.process_time_ns() - before_ns + TICK_NS
    assert found.wall_ns >= NS_PER_MS


def test_child_and_kernel_agree_on_cpu_time(talk):
    child = talk(BURNER)
    before_ns = process_cpu_ns(child.child.pid)
    found = make_exchange(child, limit_s=60)
    seen_ns = process_cpu_ns(child.child.pid) - before_ns
    assert 200 * NS_PER_MS - TICK_NS <= found.cpu_ns <= seen_ns + TICK_NS


@pytest.mark.skipif(bool(NO_MIGRATIONS), reason=NO_MIGRATIONS or "counted")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: nothing migrates")
@pytest.mark.measures_time
def test_migrations_of_all_threads_are_counted(talk):
    found = make_exchange(talk(MOVER), limit_s=60)
    assert found.migrations is not None
    assert 20 <= found.migrations < 40


def test_impossible_cpu_time_is_refused(talk):
    claim = {**ANSWER, "user_ns": 10**10}
    with pytest.raises(ChildFailed, match=r"says that it used 10000\.0 ms of CPU, the kernel counted"):
        make_exchange(talk(f"import json; input(); print(json.dumps({claim!r}), flush=True); input()"), limit_s=60)


@pytest.mark.parametrize("name", list(ANSWER))
def test_incomplete_answer_is_refused(name):
    assert Exchange.of(ANSWER, cycles=7).cycles == 7
    for damaged in ({**ANSWER, name: -1}, {**ANSWER, name: "1"}, {key: 1 for key in ANSWER if key != name}):
        with pytest.raises(ChildFailed, match=name):
            Exchange.of(damaged)


def test_ended_process_has_no_usage(talk):
    child = talk("")
    child.child.process.wait()
    with pytest.raises(ChildFailed, match="exit code 0"):
        make_exchange(child, limit_s=60)


def test_undiscovered_peers_time_out(capsys):
    answer_lines(lambda line: {}, is_matched=Burn(0).is_matched, match_s=0.05)
    assert capsys.readouterr().out == '{"matched": false}\n'


def test_cpu_clock_covers_all_threads():
    begin_ns = process_cpu_ns(os.getpid())
    Burn(0.05).exchange()
    assert process_cpu_ns(os.getpid()) - begin_ns >= 50 * NS_PER_MS


@pytest.fixture
def talk(tmp_path):
    group = ProcessGroup(log_directory=tmp_path)

    def run(program: str) -> AnsweringChild:
        return AnsweringChild(group.start("child", [sys.executable, "-c", program], talk=True))

    yield run
    group.stop()
