"""Faults of a running stack, each caused for real."""

from __future__ import annotations

import re
import signal

import psutil
import pytest

from pytest_ldos.base import exit_codes
from tests.builders.stressors import wait_until
from tests.integration.project import SCENARIO, running

ONE = ("--ldos-trials=1", "--ldos-warmup=0")

KILLER = """
import threading, time
import psutil, pytest

def kill_soon(name):
    \"\"\"Kills a node of this run when a trial is on its way.\"\"\"
    for process in psutil.Process().children(recursive=True):
        if process.name() == name:
            process.kill()

@pytest.fixture
def ldos_trials(ldos_trials, monkeypatch):
    from pytest_ldos.robot.stack.embedded.backend import EmbeddedStack
    move = EmbeddedStack.move

    def move_and_kill(self, goal, *, goal_id, seed, trial, **more):
        if trial is not None and trial.index == 1 and trial.scenario == "baseline":
            threading.Timer(DELAY, kill_soon, ["VICTIM"]).start()
        return move(self, goal, goal_id=goal_id, seed=seed, trial=trial, **more)

    monkeypatch.setattr(EmbeddedStack, "move", move_and_kill)
    return ldos_trials
"""

STANDSTILL = """
import threading
import psutil
from pytest_ldos.robot.stack.embedded.backend import EmbeddedStack

move = EmbeddedStack.move
ways = iter(STANDS_STILL)

def move_while_the_simulator_sleeps(self, goal, *, goal_id, seed, trial, **more):
    if goal.name == "home" and next(ways, False):
        simulator, = (each for each in psutil.Process().children(recursive=True) if each.name() == "simulator")
        threading.Timer(0.5, simulator.suspend).start()
        outcome = move(self, goal, goal_id=goal_id, seed=seed, trial=trial, **more)
        simulator.resume()
        return outcome
    return move(self, goal, goal_id=goal_id, seed=seed, trial=trial, **more)

EmbeddedStack.move = move_while_the_simulator_sleeps
"""
"""Stops the simulator in the middle of the ways home that are named, until the planner has given up."""

SECOND = """
import pytest

@pytest.mark.msg_load
def test_second(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack, n=1))
"""

UNREACHABLE = """
import pytest
from pytest_ldos.api import Goal, Pose

@pytest.mark.baseline
def test_far(panda_stack, ldos_trials, ldos_gate):
    far = Goal("far", pose=Pose((1.4, 0.0, 0.5), (1.0, 0.0, 0.0, 0.0)))
    near = Goal("near", pose=Pose((0.4, 0.2, 0.5), (0.707, 0.707, 0.0, 0.0)))
    ldos_gate.check(ldos_trials(panda_stack, goals=[far, near], n=2))
"""

TINY_BUFFERS = """
import os, signal, threading
import psutil, pytest
from pytest_ldos.record import lttng
from pytest_ldos.robot.stack.embedded.backend import EmbeddedStack

lttng.SUBBUFFER_SIZE = "4k"
lttng.SUBBUFFER_COUNT = 2
move = EmbeddedStack.move

def consumers():
    return [each for each in psutil.Process().children(recursive=True) if each.name() == "lttng-consumerd"]

def move_while_the_consumer_sleeps(self, goal, *, goal_id, seed, trial, **more):
    if trial is not None:
        for consumer in consumers():
            consumer.suspend()
            threading.Timer(1.0, consumer.resume).start()
    return move(self, goal, goal_id=goal_id, seed=seed, trial=trial, **more)

EmbeddedStack.move = move_while_the_consumer_sleeps
"""


INTERRUPTED = {signal.SIGINT: "the run was interrupted", signal.SIGTERM: "the run was ended by SIGTERM"}


@pytest.mark.acceptance
def test_a_goal_out_of_reach_is_a_failure_to_plan(project, leaves_nothing):
    project.write("test_scenario.py", UNREACHABLE)
    code, output = project.run("--ldos-warmup=0")
    assert code == exit_codes.REGRESSED, output
    far, near = project.saved().trials
    assert (far.outcome, far.error_code) == ("planning_failed", -31)
    assert near.outcome == "success"
    assert "planning_failed (MoveIt code -31)" in output
    assert "Traceback" not in output


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("victim", "delay", "second"),
    [("simulator", 1.0, SECOND), ("move_group", 0.005, "")],
    ids=["simulator", "move_group"],
)
def test_a_killed_process_is_a_dead_stack(project, leaves_nothing, victim, delay, second):
    """The simulator dies while the arm moves, the planner while it plans; the next scenario runs all the same."""
    project.write("conftest.py", KILLER.replace("VICTIM", victim).replace("DELAY", str(delay)))
    project.write("test_scenario.py", SCENARIO.replace("(panda_stack)", "(panda_stack, n=2)") + second)
    code, output = project.run("--ldos-warmup=0")
    assert code == exit_codes.REGRESSED, output
    first, last = project.saved().trials
    assert first.outcome == "success"
    assert last.outcome == "stack_died"
    assert f"{victim} was killed by SIGKILL" in last.message
    if second:
        assert all(trial.outcome == "success" for trial in project.saved("msg_load").trials)
    assert first.measurements["T1"].number is not None
    assert "Traceback" not in output


@pytest.mark.acceptance
def test_a_standstill_on_the_way_home_costs_a_second_attempt(project, leaves_nothing):
    project.write("conftest.py", STANDSTILL.replace("STANDS_STILL", "[True]"))
    code, output = project.run("--ldos-warmup=0", "--ldos-trials=2", "--ldos-update-baseline")
    assert code == 0, output
    first, second = project.saved().trials
    assert first.reset_failure.startswith("the arm could not return home (")
    assert (second.outcome, second.reset_failure) == ("success", "")
    assert f"after trial 1, {first.reset_failure}; the second attempt succeeded" in " ".join(output.split())
    assert "Traceback" not in output


@pytest.mark.acceptance
def test_a_standstill_on_both_ways_home_ends_the_run(project, leaves_nothing):
    project.write("conftest.py", STANDSTILL.replace("STANDS_STILL", "[True, True]"))
    code, output = project.run("--ldos-warmup=0", "--ldos-trials=2")
    assert code == exit_codes.INVALID, output
    assert len(project.saved().trials) == 1
    assert "at the second attempt, too" in " ".join(output.split())
    assert "Traceback" not in output


@pytest.mark.acceptance
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_keeps_its_finished_trials(project, leaves_nothing, temporary, number):
    process = project.start("--ldos-trials=50", "--ldos-warmup=0")
    try:
        wait_until(lambda: list(project.path.glob(".ldos/runs/*/baseline/trials.json")))
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    wait_until(lambda: not any(psutil.pid_exists(pid) and is_ours(pid, process.pid) for pid in running()))
    wait_until(lambda: not list(temporary.iterdir()))
    trials = project.saved().trials
    assert trials
    assert all(trial.outcome == "success" for trial in trials)
    if number != signal.SIGKILL:
        assert process.returncode == 2, output
        assert all(trial.measurements["T1"].number is not None for trial in trials)
        assert project.saved().incomplete == INTERRUPTED[number]
        assert "baseline: not finished; what was measured: ldos report " in output


def is_ours(pid: int, parent: int) -> bool:
    try:
        return psutil.Process(pid).ppid() in {parent, 1}
    except psutil.NoSuchProcess:
        return False


@pytest.mark.acceptance
def test_the_second_of_two_runs_is_refused(project, leaves_nothing):
    first = project.start("--ldos-trials=50", "--ldos-warmup=0")
    try:
        wait_until(lambda: list(project.path.glob(".ldos/runs/*")))
        code, output = project.run(*ONE)
        assert code == exit_codes.INVALID
        assert f"another measuring session holds this machine: pid {first.pid} " in output
        assert first.poll() is None
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)


@pytest.mark.acceptance
def test_lost_events_make_the_run_invalid(project, leaves_nothing):
    project.write("conftest.py", TINY_BUFFERS)
    code, output = project.run(*ONE)
    assert code == exit_codes.INVALID, output
    assert re.search(r"T\d.* cannot be trusted: .*\d events lost", output), output
    assert project.saved().discarded_events > 0
    assert not list(project.path.glob(".ldos/baselines/**/*.json"))
