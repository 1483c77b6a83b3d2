"""Interference with a measurement, by real busy loops and from fake kernel files."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pytest_ldos.host.interference import (
    Interference,
    InterferenceMeter,
    MachineCounters,
    add_up,
    describe_interference,
    describe_others,
    measure_briefly,
    read_machine_counters,
)
from pytest_ldos.host.processes import OWNER_VARIABLE, owned_by_us
from tests.builders.busy import foreign_load, name_all_others, run_for

ORPHANING = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=2).pid)"
LOOP = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end: pass"


def test_foreign_loop_is_counted_and_named(tmp_path, monkeypatch):
    name_all_others(monkeypatch.setattr)
    with foreign_load(tmp_path) as name:
        found = measure_briefly()
    assert name in found.programs
    assert found.others_s + (found.steal_s or 0.0) > 0.8 * found.programs[name]
    assert describe_interference(found).startswith("others used ")


def test_children_are_not_counted(tmp_path, monkeypatch):
    name_all_others(monkeypatch.setattr)
    meter = InterferenceMeter()
    with foreign_load(tmp_path, is_foreign=False) as name:
        assert name not in meter.measure().programs


def test_owned_processes_of_other_sessions_are_not_counted(tmp_path, monkeypatch):
    name_all_others(monkeypatch.setattr)
    monkeypatch.setenv(OWNER_VARIABLE, owned_by_us()[OWNER_VARIABLE])
    meter = InterferenceMeter()
    with foreign_load(tmp_path) as name:
        assert name not in meter.measure().programs


@contextmanager
def orphan(script: Path, owner: str) -> Iterator[psutil.Process]:
    """A busy process whose parent has ended."""
    command = [sys.executable, "-c", ORPHANING, sys.executable, str(script)]
    environment = {OWNER_VARIABLE: owner, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    pid = int(done.stdout)
    try:
        yield psutil.Process(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("is_ours", [True, False])
def test_orphan_counts_unless_owned(tmp_path, monkeypatch, is_ours):
    name_all_others(monkeypatch.setattr)
    script = tmp_path / f"orphan_{secrets.token_hex(4)}.py"
    script.write_text(LOOP)
    with orphan(script, owned_by_us()[OWNER_VARIABLE] if is_ours else "") as process:
        meter = InterferenceMeter()
        run_for(process, 0.1)
        assert (script.name in meter.measure().programs) is not is_ours


class Kernel:
    """Fake kernel files below a folder."""

    def __init__(self, root) -> None:
        self.root = root

    def write(self, place: str, text: str) -> None:
        (self.root / place).parent.mkdir(parents=True, exist_ok=True)
        (self.root / place).write_text(text)

    def cpus(self, *, idle: int, steal: int = 0) -> None:
        self.write("proc/stat", f"cpu  9 9 9 {idle} 0 0 0 {steal} 0 0\ncpu0 9 9 9 9\ncpu1 9 9 9 9\nctxt 1\n")

    def process(self, pid: int, name: str, parent: int, *, used: int, children: int = 0, session: int = 1) -> None:
        times = f"{used} 0 {children} 0"
        self.write(f"proc/{pid}/stat", f"{pid} ({name}) S {parent} 1 {session} 0 0 0 0 0 0 0 {times} 20 0 1 0 {pid} 0")

    def end(self, pid: int) -> None:
        (self.root / f"proc/{pid}/stat").unlink()


@pytest.fixture
def kernel(tmp_path):
    return Kernel(tmp_path)


def test_short_lived_process_is_named_after_its_parent(kernel):
    kernel.cpus(idle=1000)
    kernel.process(7, "pytest", 1, used=100)
    kernel.process(8, "make", 1, used=10, children=500)
    kernel.process(9, "cc1plus", 8, used=3000)
    kernel.process(10, "planner", 7, used=50)
    meter = InterferenceMeter(kernel.root, 7)
    kernel.cpus(idle=1000)
    kernel.end(9)
    kernel.end(10)
    kernel.process(7, "pytest", 1, used=110, children=70)
    kernel.process(8, "make", 1, used=10, children=500 + 3000 + 20 + 5)
    assert meter.measure().programs == {"make": pytest.approx(0.25)}


def test_name_with_brackets_and_spaces(kernel):
    kernel.process(7, "pytest", 1, used=0)
    meter = InterferenceMeter(kernel.root, 7)
    kernel.process(9, "a) S (b c", 1, used=100)
    assert meter.measure().programs == {"a) S (b c": 1.0}


def test_invisible_processes_count_by_the_total(kernel):
    """As in a container: the kernel's total includes invisible processes."""
    kernel.cpus(idle=1000)
    kernel.process(7, "pytest", 1, used=100)
    meter = InterferenceMeter(kernel.root, 7)
    time.sleep(0.05)  # two CPUs were busy for at least this long
    found = meter.measure()
    assert found.programs == {}
    assert found.others_s == pytest.approx(2 * found.seconds)


def test_unreported_facts_are_none(kernel):
    found = InterferenceMeter(kernel.root, 7).measure()
    facts = (found.others_s, found.steal_s, found.throttled_s, found.thermal_throttles, found.memory_stall_s)
    assert facts == (None,) * 5
    assert describe_interference(found) == ""
    assert found.others_share == 0.0


def test_decreasing_counter_gives_no_negative_value(kernel):
    kernel.cpus(idle=1000, steal=300)
    meter = InterferenceMeter(kernel.root, 7)
    kernel.cpus(idle=999, steal=299)
    assert meter.measure().steal_s == 0.0


def test_counters_of_the_machine(kernel):
    kernel.cpus(idle=1000, steal=300)
    kernel.write("proc/pressure/memory", "some avg10=0.00 avg60=0.00 total=2500000\nfull total=1\n")
    kernel.write("proc/self/mountinfo", "30 1 0:1 / /cg rw - cgroup2 cgroup2 rw\n")
    kernel.write("proc/self/cgroup", "0::/job/tests\n")
    kernel.write("cg/cpu.stat", "usage_usec 5\n")
    kernel.write("cg/job/cpu.stat", "usage_usec 5\nnr_throttled 4\nthrottled_usec 700000\n")
    kernel.write("cg/job/tests/cpu.stat", "usage_usec 5\nnr_throttled 0\nthrottled_usec 0\n")
    for cpu in (0, 1):
        kernel.write(f"sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count", "3\n")
    assert read_machine_counters(kernel.root) == MachineCounters(2, 10.0, 3.0, pytest.approx(0.7), 6, 2.5)


def span(**facts) -> Interference:
    return Interference(**{"seconds": 4.0, "cpus": 2, **facts})


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"others_s": 0.7}, ""),
        ({"others_s": 6.4, "programs": {"cargo": 4.0, "cc1plus": 2.0}}, "others used 1.6 of 2 CPUs: cargo, cc1plus"),
        ({"others_s": 6.4, "programs": dict.fromkeys("abcd", 1.0)}, "others used 1.6 of 2 CPUs: a, b, c …"),
        ({"others_s": 6.4, "programs": {"x\x1b[2J\n::error::": 1.0}}, r"others used 1.6 of 2 CPUs: x\x1b[2J ::error::"),
        ({"steal_s": 2.0}, "the hypervisor took 0.5 of 2 CPUs"),
        ({"throttled_s": 1.0}, "a quota of CPU time stopped our control group for 1.0 s of 4.0 s"),
        ({"thermal_throttles": 2}, "cores slowed down for heat 2 times"),
        ({"memory_stall_s": 1.0, "steal_s": 0.1}, "programs waited for memory for 1.0 s of 4.0 s"),
        ({"seconds": 0.1, "others_s": 0.2}, ""),
    ],
)
def test_descriptions(facts, words):
    assert describe_interference(span(**facts)) == words


def test_quiet_machine_is_described_on_request():
    assert describe_others(span(others_s=0.08, programs={"sshd": 0.08})) == "others used 0.0 of 2 CPUs: sshd"
    assert describe_others(span()) == ""


def test_spans_add_up_and_unknown_values_stay_unknown():
    both = add_up([span(others_s=1.0, programs={"a": 1.0}), span(others_s=2.0, steal_s=0.5, programs={"b": 2.0})])
    assert both == span(seconds=8.0, others_s=3.0, steal_s=0.5, programs={"b": 2.0, "a": 1.0})
    assert both.others_share == pytest.approx(3.5 / 16)
    assert add_up([]) is None
