"""One measuring session at a time; the second one is told who holds the machine."""

from __future__ import annotations

import secrets
import subprocess
import sys

import pytest

from pytest_ldos.errors import MachineBusy
from pytest_ldos.host.lock import LOCK_VARIABLE, measuring_lock

HOLDER = """
import sys
from pytest_ldos.host.lock import measuring_lock
with measuring_lock():
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def own_lock(monkeypatch):
    monkeypatch.setenv(LOCK_VARIABLE, f"ldos-test-{secrets.token_hex(8)}")


def test_the_second_is_refused_and_told_of_the_first(own_lock):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(MachineBusy) as caught, measuring_lock():
        pytest.fail("two hold the machine")
    assert f"pid {holder.pid} " in str(caught.value)
    assert sys.executable in str(caught.value)
    holder.communicate("\n")
    with measuring_lock():
        pass


def test_a_killed_holder_leaves_nothing_behind(own_lock):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()
    holder.kill()
    holder.communicate()
    with measuring_lock():
        pass
