"""One measuring session at a time; a second one is refused with the holder's name."""

from __future__ import annotations

import secrets
import subprocess
import sys
import time

import psutil
import pytest

from pytest_ldos.base.errors import ConfigurationError, MachineBusy
from pytest_ldos.host.lock import LOCK_VARIABLE, measuring_lock
from tests.builders.namespaces import in_namespaces

HOLDER = """
import sys
from pytest_ldos.host.lock import measuring_lock
with measuring_lock() as tell:
    tell("the first")
    tell("tests/test_reach.py::test_reach" + 100 * "\\u202e")
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def own_lock(monkeypatch):
    monkeypatch.setenv(LOCK_VARIABLE, f"ldos-test-{secrets.token_hex(8)}")


def test_impossible_lock_name_is_refused_immediately(monkeypatch):
    monkeypatch.setenv(LOCK_VARIABLE, "x" * 200)
    waits = []
    with (
        pytest.raises(ConfigurationError, match="fewer than a hundred letters"),
        measuring_lock(wait_s=60, on_waiting=waits.append),
    ):
        pass
    assert waits == []


def test_second_session_is_refused_with_the_holder(own_lock):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(MachineBusy) as caught, measuring_lock():
        pytest.fail("two hold the machine")
    assert f"pid {holder.pid} " in str(caught.value)
    assert "which measures tests/test_reach.py::test_reach" in str(caught.value)
    assert "measures the first" not in str(caught.value)
    assert "\u202e" not in str(caught.value)
    assert sys.executable in str(caught.value)
    holder.communicate("\n")
    with measuring_lock():
        pass


def test_holder_outside_the_container_is_named_as_such(own_lock):
    second = "from pytest_ldos.host.lock import measuring_lock\nwith measuring_lock():\n    pass"
    command = in_namespaces("", [sys.executable, "-c", second], kinds=("pid", "fork"))
    with measuring_lock():
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "holds this machine: a process outside this container" in done.stderr


def test_holder_is_named_after_a_timeout(own_lock):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()
    waits, began = [], time.monotonic()
    with pytest.raises(MachineBusy) as caught, measuring_lock(wait_s=0.5, on_waiting=waits.append):
        pytest.fail("two hold the machine")
    assert time.monotonic() - began >= 0.5
    assert f"after 0.5 s of waiting: pid {holder.pid} " in str(caught.value)
    (holder_text,) = waits
    assert holder_text.startswith(f"pid {holder.pid} ")
    holder.communicate("\n")


def test_waiting_session_acquires_the_lock(own_lock):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()

    def release(_):
        holder.stdin.write("\n")
        holder.stdin.flush()

    with measuring_lock(wait_s=60, on_waiting=release):
        assert holder.wait(60) == 0
    holder.communicate()


def test_killed_holder_releases_the_lock(own_lock):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()
    holder.kill()
    holder.communicate()
    with measuring_lock():
        pass


WAITER = """
import sys, time
from pytest_ldos.host.lock import measuring_lock
with measuring_lock(wait_s=float("inf"), on_waiting=lambda holder: print("waiting for", holder, flush=True)):
    print("held", flush=True)
"""


def switches_once_asleep(process):
    """Voluntary switches of a process until it waits, up to one."""
    deadline = time.monotonic() + 60
    while process.status() != psutil.STATUS_SLEEPING:
        assert time.monotonic() < deadline
    return process.num_ctx_switches().voluntary


@pytest.mark.parametrize("end", ["tells it to end", "kills it"])
def test_waiting_session_sleeps_until_the_holder_ends(own_lock, end):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()
    waiters = [subprocess.Popen([sys.executable, "-c", WAITER], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    switches = []
    for waiter in waiters:
        assert waiter.stdout.readline().startswith(f"waiting for pid {holder.pid} ")
        switches.append(switches_once_asleep(psutil.Process(waiter.pid)))
    first = psutil.Process(waiters[0].pid)
    assert first.num_ctx_switches().voluntary <= switches[0] + 1, "while the others started, it did not look once"
    if end == "kills it":
        holder.kill()
    holder.communicate("\n" if end != "kills it" else None)
    for waiter in waiters:
        rest, _ = waiter.communicate(timeout=60)
        assert rest.splitlines()[-1] == "held"
        assert waiter.returncode == 0
