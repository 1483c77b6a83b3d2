"""CPU limits apply to every thread of the stack, and are undone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from pytest_ldos.base.errors import ConfigurationError, LoadFailed, Unavailable
from pytest_ldos.host.availability import Availability
from pytest_ldos.host.cgroup import find_home, find_place
from pytest_ldos.host.cpu import kept_off, our_cpus, read_affinities, with_descendants
from pytest_ldos.measure.load import cpu_limit
from pytest_ldos.measure.load.cpu_limit import run_cpu_limit
from pytest_ldos.measure.load.protocol import load_available
from pytest_ldos.scenario.loads import CpuLimitSpec
from pytest_ldos.scenario.model import StackSpec
from tests.builders.stressors import wait_until

STACK = """
import os, subprocess, sys, threading, time
def work():
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    return subprocess.Popen(["sleep", "600"]).pid
work()
print("ready", flush=True)
for line in sys.stdin:
    if line == "work\\n":
        print(work(), flush=True)
    elif line == "burn\\n":
        threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
    else:
        os.sched_setaffinity(0, range(os.cpu_count()))
        print("escaped", flush=True)
"""

needs_two_cpus = pytest.mark.skipif(len(our_cpus()) < 2, reason="one CPU cannot be distinguished from all")
needs_quota = pytest.mark.skipif(isinstance(find_place(), Availability), reason="no quota may be had here")


class SmallStack:
    process: Any

    def __init__(self) -> None:
        command = [sys.executable, "-c", STACK]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
        )
        assert self.process.stdout.readline() == "ready\n"

    def tell(self, word: str) -> None:
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def ask(self, word: str) -> str:
        self.tell(word)
        return self.process.stdout.readline().strip()

    def pids(self) -> list[int]:
        return [self.process.pid]

    def end(self) -> None:
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()


@pytest.fixture
def stack():
    stack = SmallStack()
    yield stack
    stack.end()


@pytest.fixture
def site(site, stack):
    return replace(site, pids=stack.pids)


def affinities(stack: SmallStack) -> set[frozenset[int]]:
    return set(read_affinities(with_descendants(stack.pids())).values())


@needs_two_cpus
def test_all_threads_are_limited_and_restored(site, stack):
    one = frozenset([min(our_cpus())])
    with run_cpu_limit(CpuLimitSpec(cpus=1), site) as limit:
        assert limit.proof.threads == 3
        stack.ask("work")
        assert limit.proof.threads == 5
        assert affinities(stack) == {one}
        assert limit.proof.shortfall == ""
    assert affinities(stack) == {our_cpus()}
    proof = limit.proof
    assert proof.shortfall == ""
    assert proof.cpus == str(min(one))
    assert f"5 threads of the stack on CPUs {proof.cpus};" in proof.describe()


@needs_two_cpus
def test_escaped_thread_is_reported_until_the_end(site, stack):
    with run_cpu_limit(CpuLimitSpec(cpus=1), site) as limit:
        assert stack.ask("escape") == "escaped"
        wait_until(lambda: limit.proof.shortfall)
        os.sched_setaffinity(stack.process.pid, {min(our_cpus())})
    assert f"thread {stack.process.pid} of python" in limit.proof.shortfall
    assert "not only" in limit.proof.shortfall


@needs_two_cpus
def test_escape_is_detected_periodically(site, stack):
    with run_cpu_limit(CpuLimitSpec(cpus=1), site) as limit:
        stack.ask("escape")
        wait_until(lambda: limit._trouble)


@needs_two_cpus
def test_named_cpus(site, stack):
    last = max(our_cpus())
    with run_cpu_limit(CpuLimitSpec(cpus=f"{last}-{last}"), site) as limit:
        assert affinities(stack) == {frozenset([last])}
    assert limit.proof.cpus == str(last)


@pytest.mark.parametrize("cpus", [100_000, "100000", "0,5000-70000", "3-2"])
def test_missing_cpus_are_refused(cpus):
    with pytest.raises(ConfigurationError, match=f"this process may use {len(our_cpus())}: "):
        load_available(CpuLimitSpec(cpus=cpus), StackSpec())


@needs_quota
@pytest.mark.alone
def test_quota_is_enforced_and_removed(site, stack):
    home = find_home(stack.process.pid)
    with run_cpu_limit(CpuLimitSpec(cpus=len(our_cpus()), quota_percent=4), site) as limit:
        child = int(stack.ask("work"))
        stack.tell("burn")
        wait_until(lambda: limit.proof.throttled >= 5)
        folder = find_home(child)
        assert folder != home
        proof = limit.proof
        assert proof.shortfall == ""
        assert 0 < proof.used_percent < 20
        assert proof.throttled_s > 0
    assert find_home(stack.process.pid) == find_home(child) == home
    assert not folder.exists()
    assert "quota 4 %, stopped in" in limit.proof.describe()


@needs_quota
@pytest.mark.alone
def test_process_outside_the_quota_is_reported(site, stack):
    with run_cpu_limit(CpuLimitSpec(cpus=len(our_cpus()), quota_percent=50), site) as limit:
        home = find_place().folder
        (home / "cgroup.procs").write_text(str(stack.process.pid))
        assert f"process {stack.process.pid} of the stack left the control group" in limit.proof.shortfall


@needs_quota
@pytest.mark.alone
def test_changed_quota_is_a_shortfall(site, stack):
    with run_cpu_limit(CpuLimitSpec(cpus=len(our_cpus()), quota_percent=50), site) as limit:
        folder = find_home(stack.process.pid)
        setting, text = ("cpu.max", "max") if find_place().version == 2 else ("cpu.cfs_quota_us", "-1")
        (folder / setting).write_text(text)
        assert "somebody changed the quota" in limit.proof.shortfall


def test_without_permission_for_a_quota_the_remedy_is_named(site, monkeypatch):
    answer = Availability(False, "no control group may be made", "as root")
    monkeypatch.setattr(cpu_limit, "find_place", lambda: answer)
    spec = CpuLimitSpec(cpus=1, quota_percent=50)
    assert load_available(spec, StackSpec()).remedy == "as root"
    with pytest.raises(Unavailable, match=r"quota_percent: no control group may be made"), run_cpu_limit(spec, site):
        pass
    assert load_available(CpuLimitSpec(cpus=1), StackSpec()).ok


def test_stopped_stack_cannot_be_limited(site, stack):
    stack.end()
    with pytest.raises(LoadFailed, match="none of its processes runs"), run_cpu_limit(CpuLimitSpec(), site):
        pass


@needs_two_cpus
def test_death_of_the_stack_is_no_shortfall(site, stack):
    with run_cpu_limit(CpuLimitSpec(cpus=1), site) as limit:
        stack.end()
    assert limit.proof.shortfall == ""
    assert limit.proof.threads == 3


def test_using_more_than_the_quota_is_a_shortfall(site, stack):
    limit = cpu_limit.RunningCpuLimit(CpuLimitSpec(quota_percent=1), site, our_cpus(), None)
    limit._quota = object()
    stack.tell("burn")
    deadline = time.monotonic() + 60
    while not limit._overuse():
        assert time.monotonic() < deadline
        limit._time.note(stack.pids())
    assert "its quota is 1 %" in limit._overuse()


@pytest.mark.parametrize("arguments", [{"cpus": 0}, {"cpus": "all"}, {"quota_percent": 0.5}, {"quota_percent": -1}])
def test_invalid_limits_are_refused(arguments):
    with pytest.raises(ConfigurationError):
        CpuLimitSpec(**arguments)


@needs_two_cpus
def test_a_stack_with_its_own_cpus_is_limited_to_some_of_them(site, stack):
    last = max(our_cpus())
    site = replace(site, stack=StackSpec(cpus=f"{last}"))
    with kept_off(frozenset([last])), run_cpu_limit(CpuLimitSpec(cpus=1), site):
        assert affinities(stack) == {frozenset([last])}
    with pytest.raises(ConfigurationError, match=rf"asks for 2 CPUs; the stack may use 1: {last}"):
        load_available(CpuLimitSpec(cpus=2), site.stack)
