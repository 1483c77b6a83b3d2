"""Context switches, by the kernel's counts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from resource import RUSAGE_THREAD, getrusage

from pytest_ldos.base.series import SwitchCounts
from pytest_ldos.host.counters import OwnSwitchCounter, SwitchCounter

SLEEPY = """
import time
from resource import RUSAGE_THREAD, getrusage
while getrusage(RUSAGE_THREAD).ru_nvcsw < 50: time.sleep(0.0005)
"""


def test_sleeping_thread_switches_voluntarily():
    counter = SwitchCounter([0])
    assert counter.counts() == SwitchCounts(0, 0, 0), "no such process"
    counter = SwitchCounter([os.getpid()])
    enough = getrusage(RUSAGE_THREAD).ru_nvcsw + 20
    while (
        getrusage(RUSAGE_THREAD).ru_nvcsw < enough
    ):  # a thread that is preempted for as long does not switch voluntarily
        time.sleep(0.0005)
    assert counter.counts().voluntary >= 20


def test_switches_of_ended_children_are_counted():
    counter = OwnSwitchCounter()
    subprocess.run([sys.executable, "-c", SLEEPY], check=True)
    counts = counter.counts()
    assert counts.voluntary >= 50
    assert counts.migrations is None


def task(root, tid: int, voluntary: int, involuntary: int, migrations: int | None) -> None:
    folder = root / f"proc/7/task/{tid}"
    folder.mkdir(parents=True, exist_ok=True)
    text = f"Name:\tx y\nvoluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t{involuntary}\n"
    (folder / "status").write_text(text)
    if migrations is not None:
        (folder / "sched").write_text(f"x (7, #threads: 1)\n---\nse.nr_migrations : {migrations}\nse.load.weight : 1\n")


def test_threads_are_summed_and_new_ones_count_from_their_start(tmp_path):
    task(tmp_path, 7, 100, 10, 3)
    counter = SwitchCounter([7], tmp_path)
    task(tmp_path, 7, 150, 11, 5)
    task(tmp_path, 8, 20, 2, 1)
    assert counter.counts() == SwitchCounts(70, 3, 3)


def test_unreported_migrations_are_unknown(tmp_path):
    task(tmp_path, 7, 1, 1, None)
    counter = SwitchCounter([7], tmp_path)
    task(tmp_path, 7, 2, 1, None)
    assert counter.counts() == SwitchCounts(1, 0, None)


def test_damaged_files_are_ignored(tmp_path):
    task(tmp_path, 7, 1, 1, 1)
    (tmp_path / "proc/7/task/7/status").write_text("voluntary_ctxt_switches: many\n\x00")
    assert SwitchCounter([7], tmp_path).counts() == SwitchCounts(0, 0, 0)
