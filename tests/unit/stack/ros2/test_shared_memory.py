"""Only what is new, Fast DDS's own, and locked by nobody is removed."""

from __future__ import annotations

import fcntl
import subprocess
import sys

import pytest

from pytest_ldos.stack.ros2.shared_memory import SharedMemory

OLD, NEW, OTHERS = "fastrtps_0123456789abcdef", "fastrtps_fedcba9876543210", "fastdds_00000000000000ff"
PORT = ["fastrtps_port7411", "fastrtps_port7411_el", "sem.fastrtps_port7411_mutex"]
HOLDER = """
import fcntl, sys
lock = open(sys.argv[1])
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def add(folder, *names):
    for name in names:
        (folder / name).touch()


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def test_what_a_killed_process_left_is_removed(tmp_path):
    old = [OLD, f"{OLD}_el"]
    add(tmp_path, *old)
    before = SharedMemory(tmp_path)
    others = ["lttng-ust-wait-8", "fastrtps_notes", "sem.other"]
    add(tmp_path, NEW, f"{NEW}_el", *PORT, *others)
    before.remove_left_behind()
    assert names(tmp_path) == sorted([*old, *others])


@pytest.mark.parametrize(("suffix", "kind"), [("_el", fcntl.LOCK_EX), ("_sl", fcntl.LOCK_SH)])
def test_what_came_since_and_is_somebody_elses_stays(tmp_path, suffix, kind):
    before = SharedMemory(tmp_path)
    add(tmp_path, OTHERS, f"{OTHERS}{suffix}", NEW, f"{NEW}_el")
    with (tmp_path / f"{OTHERS}{suffix}").open() as lock:
        fcntl.flock(lock, kind)
        before.remove_left_behind()
        assert names(tmp_path) == sorted([OTHERS, f"{OTHERS}{suffix}"])
    before.remove_left_behind()
    assert names(tmp_path) == []


def test_the_kernel_lets_go_of_the_lock_of_a_process_that_is_killed(tmp_path):
    before = SharedMemory(tmp_path)
    add(tmp_path, *PORT)
    command = [sys.executable, "-c", HOLDER, tmp_path / PORT[1]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        before.remove_left_behind()
        assert names(tmp_path) == PORT
        holder.kill()
    before.remove_left_behind()
    assert names(tmp_path) == []


def test_a_machine_without_shared_memory(tmp_path):
    SharedMemory(tmp_path / "none").remove_left_behind()
