"""Stray processes: found by what they are, ended by what they were when they were found."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys

import psutil
import pytest

from pytest_ldos.doctor.changes import ChangeLog
from pytest_ldos.doctor.ending import end_process
from pytest_ldos.doctor.finding import Status
from pytest_ldos.doctor.machine import ProcessFacts, list_processes
from pytest_ldos.doctor.mend import describe_question
from pytest_ldos.doctor.strays import check_strays, find_strays, role_of
from pytest_ldos.host.keeper import MARK_VARIABLE
from tests.builders.machine import build_machine

STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def stray(tmp_path):
    """A process whose program is called as MoveIt's is."""
    program = tmp_path / "move_group"
    shutil.copy(shutil.which("sleep"), program)
    process = subprocess.Popen([str(program), "600"])
    yield process
    process.kill()
    process.wait()


def facts_of(pid: int) -> ProcessFacts:
    return next(process for process in list_processes() if process.pid == pid)


def test_a_stray_is_found_with_its_pid_and_ended(tmp_path, stray):
    machine = build_machine(tmp_path / "m", processes=list_processes, uid=os.geteuid())
    (finding,) = [finding for finding in check_strays(machine) if str(stray.pid) in finding.name]
    assert finding.status is Status.WARNING
    assert finding.text.startswith(f"move_group {stray.pid}: ")
    assert describe_question(finding.fix) == f"end process {stray.pid} (move_group) (cannot be undone)?"
    finding.fix.apply(machine, ChangeLog(tmp_path / "changes.json"))
    assert stray.wait(timeout=10) == -signal.SIGINT
    assert stray.pid not in {process.pid for process, _ in find_strays(machine)}


def test_a_pid_that_is_anothers_by_now_is_left_alone(stray):
    end_process(dataclasses.replace(facts_of(stray.pid), created=facts_of(stray.pid).created - 1))
    assert stray.poll() is None


def test_a_process_that_has_ended_is_no_fault():
    process = subprocess.Popen(["sleep", "600"])
    facts = facts_of(process.pid)
    process.kill()
    process.wait()
    end_process(facts)


def test_who_ignores_signals_is_killed():
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    end_process(facts_of(process.pid), patience_s=0.05)
    assert process.wait(timeout=10) == -signal.SIGKILL
    process.stdout.close()


def test_strays_of_a_measurement_that_goes_on_are_none(tmp_path, stray):
    machine = build_machine(tmp_path / "m", processes=list_processes, uid=os.geteuid(), measuring=os.getpid)
    assert stray.pid not in {process.pid for process, _ in find_strays(machine)}


def test_strays_of_other_users_are_none_of_ours(tmp_path, stray):
    machine = build_machine(tmp_path / "m", processes=list_processes, uid=os.geteuid() + 1)
    assert find_strays(machine) == []


def test_whoever_asks_is_spared(tmp_path):
    """Also when the terminal was started by ``ros2 launch``."""
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
        ("python3 -m pytest_ldos.stack.embedded.simulator", "process of an earlier measurement"),
        ("stress-ng --cpu 2", "stress-ng"),
        ("vim move_group.cpp", ""),
        ("less /opt/ros/jazzy/lib/x", ""),
        ("git commit -m gz-simulation", ""),
        ("bash", ""),
    ],
)
def test_roles(command, role):
    assert role_of(ProcessFacts(1, 1, "x", tuple(command.split()), 0.0, 0)) == role


def test_what_a_stack_of_ours_started_bears_its_mark():
    assert role_of(ProcessFacts(1, 1, "x", ("robot",), 0.0, 0, {MARK_VARIABLE: "1"}))


def test_a_process_without_a_command_line_has_its_name():
    assert role_of(ProcessFacts(1, 1, "move_group", (), 0.0, 0)) == "move_group"


def test_listed_processes_can_be_told_apart():
    ours = facts_of(os.getpid())
    assert ours.created == psutil.Process().create_time()
    assert ours.parent == os.getppid()
    assert ours.environment["PATH"]
