"""Stray processes: detection, and safe termination."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys

import psutil
import pytest

from pytest_ldos.doctor.changes import ChangeLog, ProcessFacts, Status, describe_question, list_processes
from pytest_ldos.doctor.check_leftovers import check_measurements, check_strays, end_process, find_strays, role_of
from pytest_ldos.host.processes import OWNER_VARIABLE, living_owner, owned_by_us
from tests.builders.machine import build_machine
from tests.builders.stressors import wait_until

STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


MEASUREMENT = """
import os, sys
from pathlib import Path
from pytest_ldos.host.kept import KeptTree
from pytest_ldos.host.lock import measuring_lock
from pytest_ldos.host.processes import ProcessGroup

program, folder = sys.argv[1], Path(sys.argv[2])
with measuring_lock():
    group = ProcessGroup(log_directory=folder)
    group.start("load", [program, "600"])
    # What a launch file starts in a session of its own is no descendant of ours any more when its parent ends.
    group.start("far", ["sh", "-c", 'setsid "$0" 600 & echo $! > "$1"', program, str(folder / "far.pid")])
    kept = KeptTree("launch", [program, "600"], log=folder / "launch.log", environment={})
    while not (folder / "far.pid").exists() or not (folder / "far.pid").read_text().strip() or not kept.pids():
        pass
    print("ready", flush=True)
    sys.stdin.read()
    kept.stop()
    group.stop()
"""
"""A stack with MoveIt's process names, which runs until its standard input ends."""


@pytest.fixture
def program(tmp_path):
    """A program with the name of MoveIt's."""
    path = tmp_path / "move_group"
    shutil.copy(shutil.which("sleep"), path)
    return path


@pytest.fixture
def stray(program):
    # Where these tests run in the background of a shell, SIGINT is ignored, which children inherit.
    process = subprocess.Popen(["env", "--default-signal=INT", str(program), "600"])
    wait_until(lambda: psutil.Process(process.pid).name() == "move_group")
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def measurement(program, tmp_path):
    """A measurement with real processes, under another lock."""
    command = [sys.executable, "-c", MEASUREMENT, str(program), str(tmp_path)]
    environment = {**os.environ, "LDOS_LOCK": f"ldos-test-{secrets.token_hex(8)}"}
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()
    with contextlib.suppress(ProcessLookupError):
        os.kill(int((tmp_path / "far.pid").read_text()), signal.SIGKILL)


def diagnose_by_command(folder):
    """The command's findings on processes, by name, with this machine's settings and locks."""
    command = [sys.executable, "-c", "from pytest_ldos.cli.main import run; run()", "doctor", "--json"]
    environment = {name: value for name, value in os.environ.items() if name != "LDOS_LOCK"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["findings"]


def facts_of(pid: int) -> ProcessFacts:
    return next(process for process in list_processes() if process.pid == pid)


def test_a_stray_is_found_with_its_pid_and_ended(tmp_path, stray):
    machine = build_machine(tmp_path / "m", processes=list_processes, uid=os.geteuid())
    (finding,) = [finding for finding in check_strays(machine) if finding.name == f"stray process {stray.pid}"]
    assert finding.status is Status.WARNING
    assert finding.text.startswith(f"move_group {stray.pid}: ")
    assert describe_question(finding.fix) == f"end process {stray.pid} (move_group) (cannot be undone)?"
    finding.fix.apply(machine, ChangeLog(tmp_path / "changes.json"))
    assert stray.wait(timeout=60) == -signal.SIGINT
    assert stray.pid not in {process.pid for process, _ in find_strays(machine)}


def test_reused_pid_is_not_ended(stray):
    end_process(dataclasses.replace(facts_of(stray.pid), created=facts_of(stray.pid).created - 1))
    assert stray.poll() is None


def test_ended_process_is_no_error():
    process = subprocess.Popen(["sleep", "600"])
    facts = facts_of(process.pid)
    process.kill()
    process.wait()
    end_process(facts)


def test_process_that_ignores_signals_is_killed():
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    end_process(facts_of(process.pid), patience_s=0.05)
    assert process.wait(timeout=60) == -signal.SIGKILL
    process.stdout.close()


def test_processes_of_a_running_measurement_are_no_strays(tmp_path, stray):
    machine = build_machine(tmp_path / "m", processes=list_processes, uid=os.geteuid(), measuring=os.getpid)
    assert stray.pid not in {process.pid for process, _ in find_strays(machine)}


@pytest.mark.acceptance
def test_processes_of_a_measurement_under_another_lock_are_no_strays(measurement, program, tmp_path):
    findings = diagnose_by_command(tmp_path)
    started = {f"stray process {process.pid}" for process in list_processes() if str(program) in process.command}
    assert len(started) >= 3
    assert not started & {each["name"] for each in findings}
    (running,) = [each for each in findings if each["name"] == "measurements" and str(measurement.pid) in each["text"]]
    assert (running["status"], running["fix"]) == ("warning", None)
    assert running["remedy"].startswith("wait until it ends")


def test_processes_of_a_killed_measurement_are_strays(measurement, program, tmp_path):
    far = int((tmp_path / "far.pid").read_text())
    measurement.kill()
    measurement.wait()
    machine = build_machine(tmp_path / "m", processes=list_processes, uid=os.geteuid())
    assert (far, "move_group") in {(process.pid, role) for process, role in find_strays(machine)}
    assert not [each for each in check_measurements(machine) if str(measurement.pid) in each.text]


def test_reused_pid_is_no_owner():
    ((name, value),) = owned_by_us().items()
    assert living_owner({name: value}) == os.getpid()
    assert living_owner({name: f"{os.getpid()} 1"}) is None


@pytest.mark.parametrize(
    "value", ["", "x", "1", "1 ", "-1 1", "²\u00a05", "999999999999 1", pytest.param(f"{'9' * 5000} 1", id="long")]
)
def test_invalid_owner_is_ignored(value):
    assert living_owner({OWNER_VARIABLE: value}) is None


def test_processes_of_other_users_are_no_strays(tmp_path, stray):
    machine = build_machine(tmp_path / "m", processes=list_processes, uid=os.geteuid() + 1)
    assert find_strays(machine) == []


def test_calling_process_is_no_stray(tmp_path):
    """Even if the terminal was started by ``ros2 launch``."""
    me, parent = os.getpid(), os.getppid()
    processes = [
        ProcessFacts(parent, 1, "ros2", ("/usr/bin/python3", "/opt/ros/jazzy/bin/ros2", "launch", "a", "b"), 0.0, 0),
        ProcessFacts(me, parent, "ldos", ("python", "ldos", "doctor", "--ros-args"), 0.0, 0),
        ProcessFacts(999_999, 1, "gz", ("gz", "sim", "-s"), 0.0, 0),
    ]
    machine = build_machine(tmp_path, processes=lambda: processes)
    assert [process.pid for process, _ in find_strays(machine)] == [999_999]


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("gz sim -s -r world.sdf", "Gazebo"),
        ("ruby /usr/bin/gz sim -s", "Gazebo"),
        ("/opt/ros/jazzy/lib/controller_manager/ros2_control_node --ros-args", "ros2_control_node"),
        ("/usr/bin/python3 /opt/ros/jazzy/lib/controller_manager/spawner arm", "spawner"),
        ("/ws/install/lib/mine/talker --ros-args -r __node:=a", "ROS node"),
        ("/usr/bin/python3 -c from_ros2cli --name ros2-daemon --ros-domain-id 0", "ros2 daemon"),
        ("/usr/bin/python3 /opt/ros/jazzy/bin/_ros2_daemon --rmw-implementation x", "ros2 daemon"),
        ("/usr/bin/python3 /opt/ros/jazzy/bin/ros2 launch a b", "ros2 launch"),
        ("python3 -m pytest_ldos.robot.stack.embedded.simulator", "process of an earlier measurement"),
        ("stress-ng --cpu 2", "stress-ng"),
        ("vim move_group.cpp", ""),
        ("less /opt/ros/jazzy/lib/x", ""),
        ("git commit -m gz-simulation", ""),
        ("/usr/bin/python3 -W ignore -u /opt/ros/jazzy/lib/controller_manager/spawner arm", "spawner"),
        ("bash", ""),
    ],
)
def test_roles(command, role):
    assert role_of(ProcessFacts(1, 1, "x", tuple(command.split()), 0.0, 0)) == role


def test_child_process_names_its_owner():
    assert role_of(ProcessFacts(1, 1, "x", ("robot",), 0.0, 0, dict(owned_by_us())))
    assert OWNER_VARIABLE in owned_by_us()


def test_a_process_without_a_command_line_has_its_name():
    assert role_of(ProcessFacts(1, 1, "move_group", (), 0.0, 0)) == "move_group"


def test_listed_processes_are_distinguishable():
    ours = facts_of(os.getpid())
    assert ours.created == psutil.Process().create_time()
    assert ours.parent == os.getppid()
    assert ours.environment["PATH"]
