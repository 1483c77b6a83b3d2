"""Shared memory of Fast DDS: locked files are in use (real files and locks)."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager

import pytest

from pytest_ldos.doctor.changes import ChangeLog, Status
from pytest_ldos.doctor.check_ros import check_shared_memory, check_stale_segments, find_stale_segments
from tests.builders.machine import build_machine

LIVE, DEAD = "fastrtps_0123456789abcdef", "fastrtps_fedcba9876543210"


@pytest.fixture
def machine(tmp_path):
    return build_machine(tmp_path)


def add(machine, *names):
    for name in names:
        (machine.root / "dev/shm" / name).write_bytes(b"x" * 1000)


@contextmanager
def held(machine, name, kind=fcntl.LOCK_EX):
    with (machine.root / "dev/shm" / name).open() as lock:
        fcntl.flock(lock, kind)
        yield


def names(machine):
    return sorted(path.name for path in (machine.root / "dev/shm").iterdir())


def test_only_unlocked_files_are_removed(tmp_path, machine):
    stale = [DEAD, f"{DEAD}_el", "fastrtps_port7412", "fastrtps_port7412_el", "sem.fastrtps_port7412_mutex"]
    kept = [LIVE, f"{LIVE}_el", "fastrtps_port7413", "fastrtps_port7413_sl", "lttng-ust-wait-8", "fastrtps_notes"]
    add(machine, *stale, *kept)
    with held(machine, f"{LIVE}_el"), held(machine, "fastrtps_port7413_sl", fcntl.LOCK_SH):
        assert sorted(path.name for path in find_stale_segments(machine)) == sorted(stale)
        finding = check_stale_segments(machine)
        assert finding.text.startswith("5 files of processes that are gone")
        finding.fix.apply(machine, ChangeLog(tmp_path / "changes.json"))
        assert names(machine) == sorted(kept)
        assert check_stale_segments(machine).status is Status.OK


def test_segment_locked_meanwhile_is_kept(tmp_path, machine):
    add(machine, DEAD, f"{DEAD}_el")
    finding = check_stale_segments(machine)
    with held(machine, f"{DEAD}_el"):
        finding.fix.apply(machine, ChangeLog(tmp_path / "changes.json"))
    assert names(machine) == [DEAD, f"{DEAD}_el"]


def test_a_port_with_both_locks_is_in_use_if_either_is_held(machine):
    add(machine, "fastrtps_port7412", "fastrtps_port7412_el", "fastrtps_port7412_sl")
    with held(machine, "fastrtps_port7412_sl", fcntl.LOCK_SH):
        assert find_stale_segments(machine) == []


def test_links_are_not_followed(tmp_path, machine):
    (tmp_path / "precious").touch()
    (machine.root / "dev/shm" / f"{DEAD}_el").symlink_to(tmp_path / "precious")
    assert find_stale_segments(machine) == []


def test_free_shared_memory(machine):
    assert check_shared_memory(machine, enough=1).status is Status.OK
    finding = check_shared_memory(machine, enough=1 << 60)
    assert finding.status is Status.WARNING
    assert "--shm-size" in finding.remedy
    (machine.root / "dev/shm").rmdir()
    assert "missing" in check_shared_memory(machine).text
