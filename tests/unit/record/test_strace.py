"""strace with real processes."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from pytest_ldos.base.errors import ProfilingFailed
from pytest_ldos.record.strace import SyscallCounter, strace_available
from tests.builders.busy import busy_process
from tests.builders.forbidden import forbid

ABLE = strace_available()
pytestmark = pytest.mark.skipif(not ABLE.ok, reason=ABLE.reason or "strace can count")


SWITCHES_A_ROUND = 5
"""Two calls per round, one of which sleeps; strace stops at the begin and end of each."""


def run_for_rounds(pid: int, rounds: int) -> None:
    """Waits until a traced process has made the given number of rounds."""
    enough = switches(pid) + rounds * SWITCHES_A_ROUND
    deadline = time.monotonic() + 60
    while switches(pid) < enough:
        assert time.monotonic() < deadline, "it did not run"
        time.sleep(0.01)


def switches(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary"))


def test_calls_of_a_running_process_are_counted(tmp_path):
    counter = SyscallCounter(tmp_path)
    assert counter.name.startswith("strace ")
    with busy_process(gently=True) as process:
        counter.start([process.pid])
        run_for_rounds(process.pid, 40)
        found = {each.name: each for each in counter.stop()}
    sleeps, stats = found["clock_nanosleep"], next(found[name] for name in ("newfstatat", "stat") if name in found)
    assert sleeps.calls >= 20
    assert abs(sleeps.calls - stats.calls) <= 1, "one call of each in a round"
    took_time = any(each.seconds for each in found.values())
    assert sum(each.share for each in found.values()) == pytest.approx(1 if took_time else 0)


def test_missing_process_is_reported(tmp_path):
    with pytest.raises(ProfilingFailed, match=r"could not attach: .*No such process"):
        SyscallCounter(tmp_path).start([4_194_303])


def test_missing_permission_has_a_reason(tmp_path, monkeypatch):
    forbid("strace", tmp_path / "bin", "ptrace")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with busy_process() as process, pytest.raises(ProfilingFailed, match="not permitted"):
        SyscallCounter(tmp_path).start([process.pid])


def test_forbidden_ptrace_makes_strace_unavailable(tmp_path, monkeypatch):
    forbid("strace", tmp_path / "bin", "ptrace")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    able = strace_available()
    assert not able.ok
    assert "strace may not trace here: " in able.reason
    assert "Operation not permitted" in able.reason
    assert "SYS_PTRACE" in able.remedy


def test_killed_strace_is_reported_and_the_process_continues(tmp_path):
    counter = SyscallCounter(tmp_path)
    with busy_process() as process:
        counter.start([process.pid])
        assert counter._child is not None
        os.kill(counter._child.pid, signal.SIGKILL)
        counter._child.process.wait()
        with pytest.raises(ProfilingFailed, match=r"strace was killed by SIGKILL before it was interrupted"):
            counter.stop()
        assert process.poll() is None


def test_missing_package_is_named(tmp_path, monkeypatch):
    assert shutil.which("strace")
    monkeypatch.setenv("PATH", str(tmp_path))
    able = strace_available()
    assert (able.ok, able.reason, able.remedy) == (False, "strace not found", "sudo apt-get install strace")
