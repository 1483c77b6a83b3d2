"""Children end on request and with their parent, even if they resist."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from pytest_ldos.host.processes import ProcessGroup
from tests.builders.stressors import is_gone, wait_until

STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""

WITH_GRANDCHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""

PARENT = """
import sys, time
from pathlib import Path
from pytest_ldos.host.processes import ProcessGroup
group = ProcessGroup(log_directory=Path(sys.argv[1]))
sleeper = "import time; print('ready', flush=True); time.sleep(600)"
child = group.start("sleeper", [sys.executable, "-c", sleeper], talk=True)
assert child.process.stdout.readline() == "ready\\n"
print(child.pid, flush=True)
time.sleep(600)
"""


PARENT_OF_SLOW = """
import sys, time
from pathlib import Path
from pytest_ldos.host.processes import ProcessGroup
group = ProcessGroup(log_directory=Path(sys.argv[1]), environment={"PATH": sys.argv[1] + ":/usr/bin:/bin"})
group.start("slow", ["touch", sys.argv[1] + "/began"])
time.sleep(600)
"""

KILLS_ITS_PARENT = """#!/bin/sh
parent=$PPID
echo $$ > "${0%/*}/pid"
kill -KILL "$parent"
while kill -0 "$parent" 2>/dev/null; do :; done
exec /usr/bin/setpriv "$@"
"""


@pytest.fixture
def group(tmp_path):
    group = ProcessGroup(log_directory=tmp_path)
    yield group
    group.stop()


def test_child_that_ignores_signals_is_killed(group):
    child = group.start("stubborn", [sys.executable, "-c", STUBBORN], talk=True)
    assert child.process.stdout.readline() == "ready\n"
    group.stop()
    assert group.survivors() == []
    assert child.describe_end() == "stubborn was killed by SIGKILL"


def test_grandchildren_end_with_the_group(group):
    child = group.start("parent", [sys.executable, "-c", WITH_GRANDCHILD], talk=True)
    grandchild = int(child.process.stdout.readline())
    group.stop()
    assert is_gone(grandchild)


def test_zenoh_logs_are_disabled_only_in_children_with_pipes(monkeypatch, tmp_path):
    monkeypatch.setenv("RUST_LOG", "debug")
    group = ProcessGroup(log_directory=tmp_path)
    say = [sys.executable, "-c", "import os; print(os.environ['RUST_LOG'])"]
    talker, other = group.start("talker", say, talk=True), group.start("other", say)
    assert talker.process.communicate()[0] == "off\n"
    other.process.wait()
    assert other.log.read_text() == "debug\n"


def test_children_share_a_group_and_the_session(group):
    pids = [group.start(f"c{i}", [sys.executable, "-c", "import time; time.sleep(600)"]).pid for i in range(3)]
    assert {os.getpgid(pid) for pid in pids} == {pids[0]}
    assert {os.getsid(pid) for pid in pids} == {os.getsid(0)}


def test_child_starts_after_the_first_has_ended(group):
    first = group.start("first", ["true"])
    wait_until(lambda: first.exit_code is not None)
    second = group.start("second", [sys.executable, "-c", "import time; time.sleep(600)"])
    assert second.exit_code is None
    group.stop()
    assert is_gone(second.pid)


def test_children_die_with_their_parent(tmp_path):
    """Even if the parent is killed."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    assert not is_gone(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: is_gone(child))


def test_child_of_a_dead_parent_does_not_begin(tmp_path):
    setpriv = tmp_path / "setpriv"
    setpriv.write_text(KILLS_ITS_PARENT, "utf-8")
    setpriv.chmod(0o755)
    parent = subprocess.run([sys.executable, "-c", PARENT_OF_SLOW, str(tmp_path)], timeout=60, check=False)
    assert parent.returncode == -signal.SIGKILL
    child = int((tmp_path / "pid").read_text("ascii"))
    wait_until(lambda: is_gone(child))
    assert not (tmp_path / "began").exists()


def test_ended_child_is_reported_with_its_last_output(group):
    child = group.start("failing", [sys.executable, "-c", "import sys; sys.exit('no such robot')"])
    wait_until(lambda: bool(group.ended()))
    assert child.describe_end() == "failing ended with exit code 1"
    assert child.last_lines() == "no such robot"


def test_stop_may_be_repeated(group):
    group.start("sleeper", [sys.executable, "-c", "import time; time.sleep(600)"])
    group.stop()
    group.stop()
