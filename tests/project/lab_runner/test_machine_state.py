"""A machine that is busy, measured on, or not set as the lab asks: nothing begins."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest

from lab.runner.allow_list import Demands
from lab.runner.machine import require_free, require_machine, require_settings
from lab.runner.main import check
from lab.runner.refusal import Refused
from pytest_ldos.host.lock import LOCK_VARIABLE, measuring_lock
from tests.builders.runner import push

IDLE = "cpu 100 0 100 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n"


@pytest.fixture
def root(tmp_path):
    """The kernel's files of a machine with two CPUs, set as it should be."""
    cpu = tmp_path / "sys/devices/system/cpu"
    for number in range(2):
        write(cpu / f"cpu{number}/cpufreq/scaling_governor", "performance")
    write(cpu / "intel_pstate/no_turbo", "1")
    write(cpu / "smt/active", "0")
    write(tmp_path / "proc/stat", IDLE.format(idle=0))
    return tmp_path


def write(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{text}\n", "ascii")


STEADY = {"governor": "performance", "turbo": "off", "smt": "off"}


def test_correct_machine_state_is_accepted(root):
    require_settings(STEADY, root)


@pytest.mark.parametrize(
    ("file", "value", "reason"),
    [
        ("cpu1/cpufreq/scaling_governor", "powersave", "governor 'performance, powersave' instead of performance"),
        ("cpu0/cpufreq/scaling_governor", "::error::x", "governor"),
        ("intel_pstate/no_turbo", "0", "turbo 'on' instead of off"),
        ("intel_pstate/no_turbo", "2", "turbo 'unknown' instead of off"),
        ("smt/active", "1", "smt 'on' instead of off"),
        ("smt/active", "", "smt 'unknown' instead of off"),
    ],
)
def test_incorrect_machine_state_is_refused(root, file, value, reason):
    write(root / "sys/devices/system/cpu" / file, value)
    with pytest.raises(Refused, match=reason):
        require_settings(STEADY, root)


def test_unreadable_state_is_refused(tmp_path):
    for name, value in STEADY.items():
        with pytest.raises(Refused, match=f"{name} 'unknown' instead of {value}"):
            require_settings({name: value}, tmp_path)


def test_other_boost_switch(root):
    (root / "sys/devices/system/cpu/intel_pstate/no_turbo").unlink()
    write(root / "sys/devices/system/cpu/cpufreq/boost", "0")
    require_settings({"turbo": "off"}, root)


def demands(lock: str, *, max_busy: float = 0.2, settle_s: float = 0.0) -> Demands:
    return Demands(max_busy=max_busy, settle_s=settle_s, lock=lock, settings={})


class Kernel:
    """Each window that passes uses a share of the CPUs' time."""

    def __init__(self, root, *shares):
        self.root, self.shares, self.waited, self.used, self.idle = root, list(shares), 0.0, 0, 0

    def sleep(self, seconds):
        self.waited += seconds
        share = self.shares.pop(0)
        self.used, self.idle = self.used + round(100 * share), self.idle + round(100 * (1 - share))
        write(self.root / "proc/stat", f"cpu {100 + self.used} 0 100 {self.idle} 0 0 0 0 0 0")


def test_a_busy_machine_is_refused(root, lock):
    kernel = Kernel(root, 0.5)
    with pytest.raises(Refused, match=r"is busy: 50 % of its CPUs' time is used, 20 % may be \(waited 0 s\)"):
        require_machine(demands(lock), root=root, sleep=kernel.sleep)


def test_ending_process_is_awaited(root, lock):
    kernel = Kernel(root, 0.9, 0.5, 0.1, 1.0)
    require_machine(demands(lock, settle_s=10), root=root, sleep=kernel.sleep)
    assert kernel.waited == 3.0


def test_wait_has_a_limit(root, lock):
    kernel = Kernel(root, 0.9, 0.8, 0.7, 0.6)
    with pytest.raises(Refused, match="busy: 60 %"):
        require_machine(demands(lock, settle_s=3), root=root, sleep=kernel.sleep)
    assert kernel.waited == 4.0


@pytest.mark.parametrize("text", ["", "cpu", "cpu a b c d e f g h", "cpu -1 0 0 0 0 0 0 0"])
def test_kernel_without_cpu_statistics_is_refused(root, lock, text):
    write(root / "proc/stat", text)
    with pytest.raises(Refused, match="cannot be determined"):
        require_machine(demands(lock), root=root, sleep=lambda seconds: None)


def test_a_clock_that_stands(root, lock):
    with pytest.raises(Refused, match="no time passes"):
        require_machine(demands(lock), root=root, sleep=lambda seconds: None)


def test_this_machine_reports_its_load(lock):
    require_machine(demands(lock, max_busy=1.0))


def test_really_busy_machine_is_refused(lock):
    """As many loops as CPUs that this test has, which end by themselves."""
    spin = ["timeout", "20", "sh", "-c", "while :; do :; done"]
    loops = [subprocess.Popen(spin) for _ in os.sched_getaffinity(0)]
    try:
        with pytest.raises(Refused, match="this machine is busy"):
            require_machine(demands(lock, max_busy=0.3 * len(loops) / (os.cpu_count() or 1)))
    finally:
        for loop in loops:
            loop.terminate()
            loop.wait()


def test_measuring_machine_is_refused(tmp_path, allow_list, lock, monkeypatch):
    """The lock is that of the plugin, taken as the plugin takes it."""
    monkeypatch.setenv(LOCK_VARIABLE, lock)
    environment = push().environment(tmp_path)
    with (
        measuring_lock(),
        pytest.raises(Refused, match=rf"another measurement holds this machine \(process {os.getpid()}\)"),
    ):
        check(environment, allow_list, owner=os.geteuid())
    check(environment, allow_list, owner=os.geteuid())


def test_a_holder_whose_queue_is_full_is_a_holder(lock):
    with socket.socket(socket.AF_UNIX) as holder, socket.socket(socket.AF_UNIX) as first:
        holder.bind(f"\0{lock}")
        holder.listen(0)
        first.connect(f"\0{lock}")
        with pytest.raises(Refused):
            require_free(lock)
