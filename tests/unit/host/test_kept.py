"""Process trees end with their keeper (real processes)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from pytest_ldos.host.kept import KeptTree
from tests.builders.stressors import is_gone

STUBBORN = "import signal, time\nfor each in (2, 15): signal.signal(each, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"
FAMILY = """
import os, subprocess, sys, time
own_session = subprocess.Popen(["sleep", "60"], start_new_session=True)
orphan = subprocess.run(["sh", "-c", "sleep 60 >/dev/null & echo $!"], stdout=subprocess.PIPE, text=True).stdout
nameless = subprocess.Popen(["env", "-i", "/bin/sleep", "60"])
print(own_session.pid, int(orphan), nameless.pid, flush=True)
time.sleep(60)
"""


PATIENCE_S = 0.3


def start(tmp_path, code: str) -> tuple[KeptTree, list[str]]:
    command = [sys.executable, "-c", code]
    tree = KeptTree("tree", command, log=tmp_path / "tree.log", environment={}, patience_s=PATIENCE_S)
    assert tree.child.process.stdout is not None
    return tree, tree.child.process.stdout.readline().split()


def wait_until_gone(pids: list[int], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not all(map(is_gone, pids)):
        assert time.monotonic() < deadline, f"still there: {[pid for pid in pids if not is_gone(pid)]}"
        time.sleep(0.01)


def test_sessions_orphans_and_unmarked_processes_end(tmp_path):
    tree, words = start(tmp_path, FAMILY)
    pids = [int(word) for word in words]
    assert not any(map(is_gone, pids))
    tree.stop()
    assert all(map(is_gone, pids))
    assert tree.pids() == []
    tree.stop()


def test_pids_are_the_command_and_its_descendants(tmp_path):
    tree, words = start(tmp_path, FAMILY)
    try:
        own_session, orphan, _ = map(int, words)
        assert {own_session, orphan} < set(tree.pids())
        assert os.getpid() not in tree.pids()
    finally:
        tree.stop()


def test_process_that_ignores_signals_is_killed(tmp_path):
    tree, _ = start(tmp_path, STUBBORN)
    (pid,) = tree.pids()
    began = time.monotonic()
    tree.stop()
    assert is_gone(pid)
    assert time.monotonic() - began > 3 * PATIENCE_S, "SIGINT and SIGTERM come first"


def test_end_of_the_command_ends_its_keeper_and_descendants(tmp_path):
    tree, words = start(tmp_path, FAMILY.replace("time.sleep(60)\n", "sys.exit(3)"))
    assert tree.child.process.wait(timeout=60) == 3
    assert tree.child.describe_end() == "tree ended with exit code 3"
    assert all(is_gone(int(word)) for word in words)
    tree.stop()


def test_stop_ends_processes_of_a_killed_keeper(tmp_path):
    tree, words = start(tmp_path, FAMILY)
    own_session, orphan, nameless = map(int, words)
    tree.child.process.kill()
    tree.child.process.wait()
    tree.stop()
    os.kill(nameless, signal.SIGKILL)  # no process is left that could find it by descent
    wait_until_gone([own_session, orphan, nameless])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_a_killed_owner(tmp_path, number):
    owner = f"""
import sys, time
from pathlib import Path
from pytest_ldos.host.kept import KeptTree
tree = KeptTree("tree", [sys.executable, "-c", {FAMILY!r}], log=Path({str(tmp_path / "log")!r}), environment={{}}, patience_s=0.3)
print(tree.child.process.stdout.readline(), end="", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [int(word) for word in process.stdout.readline().split()]
    process.send_signal(number)
    process.wait()
    process.stdout.close()
    wait_until_gone(pids)


LAUNCHER = """
import signal, subprocess, sys, time
node = '''
import signal, sys, time
heard = []
signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
print("up", flush=True)
while not heard:
    time.sleep(0.01)
time.sleep(0.3)
open(sys.argv[1], "w").write(str(len(heard)))
'''
child = subprocess.Popen([sys.executable, "-c", node, sys.argv[1]], start_new_session=True)
signal.signal(signal.SIGINT, lambda number, frame: child.send_signal(number))
child.wait()
"""


def test_launcher_forwards_the_signal_alone(tmp_path):
    command = [sys.executable, "-c", LAUNCHER, str(tmp_path / "heard")]
    tree = KeptTree("launch", command, log=tmp_path / "launch.log", environment={}, patience_s=60)
    assert tree.child.process.stdout is not None
    assert tree.child.process.stdout.readline() == "up\n"
    tree.stop()
    assert (tmp_path / "heard").read_text() == "1", "its node is asked once"
