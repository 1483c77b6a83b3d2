"""Scheduler group of a process, from the kernel's files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from pytest_ldos.host.cpu import is_grouped_by_session, read_scheduling_group
from pytest_ldos.host.processes import ProcessGroup


def make_proc(root, *, switch: str = "1", cgroup: str = "1:cpu:/\n0::/", autogroup: str = "/autogroup-7 nice 0"):
    for name, text in {
        "proc/sys/kernel/sched_autogroup_enabled": switch,
        "proc/42/autogroup": autogroup,
        "proc/42/cgroup": cgroup,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel has no sched_autogroup")
def test_new_session_is_a_new_group(tmp_path):
    own = ProcessGroup(log_directory=tmp_path, own_session=True)
    shared = ProcessGroup(log_directory=tmp_path)
    try:
        ours = read_scheduling_group(os.getpid())
        assert read_scheduling_group(shared.start("shared", ["sleep", "60"]).pid) == ours
        alone = own.start("alone", ["sleep", "60"])
        assert read_scheduling_group(alone.pid).autogroup != ours.autogroup
        assert os.getsid(alone.pid) == alone.pid
    finally:
        own.stop()
        shared.stop()
    assert own.survivors() == []


def test_session_is_the_group_with_autogroup(tmp_path):
    group = read_scheduling_group(42, make_proc(tmp_path))
    assert group.effective == group.describe() == "/autogroup-7"


def test_without_autogroup_all_share_a_group(tmp_path):
    root = make_proc(tmp_path, switch="0")
    assert not is_grouped_by_session(root)
    assert read_scheduling_group(42, root).effective == "/"


def test_control_group_has_precedence_over_the_session(tmp_path):
    group = read_scheduling_group(42, make_proc(tmp_path, cgroup="3:cpuset:/\n1:cpu,cpuacct:/robots/arm\n0::/"))
    assert group.effective == "/robots/arm"
    assert group.describe() == "control group /robots/arm"


@pytest.mark.parametrize(("enabled_at", "effective"), [("a", "/a"), ("a/b", "/a/b"), ("", "/autogroup-7")])
def test_version_2_uses_the_group_with_the_controller(tmp_path, enabled_at, effective):
    root = make_proc(tmp_path, cgroup="0::/a/b")
    mount = root / "sys/fs/cgroup"
    (mount / "a/b").mkdir(parents=True)
    (mount / "cgroup.controllers").touch()
    if enabled_at:
        (mount / enabled_at / "cpu.weight").touch()
    assert read_scheduling_group(42, root).effective == effective


def test_ended_process_has_no_group():
    process = subprocess.Popen(["true"])
    process.wait()
    assert read_scheduling_group(process.pid) is None
