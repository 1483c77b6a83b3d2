"""Metrics of paths, topics and processes of the short real run, from its settings to its record."""

from __future__ import annotations

import pytest

from pytest_ldos.measure.trial.record import MotionTrial
from pytest_ldos.robot.stack.embedded.state_publisher import PUBLISH_PERIOD_NS
from tests.integration.embedded.short_run import ShortRun

SETTINGS = "[tool.pytest.ini_options]\naddopts = '--strict-markers'\n"
NAMES = {"simulator", "move_group", "state_publisher"}


@pytest.fixture
def trial(short_run: ShortRun) -> MotionTrial:
    return short_run.project.saved().motions[0]


def test_each_has_a_value(trial):
    asked = {name: found for name, found in trial.measurements.items() if "_" in name}
    assert len(asked) == 13
    assert all(found.number is not None for found in asked.values()), asked


def test_paths_are_those_of_the_trial(trial):
    of = trial.measurements
    assert of["path_planning_p50"].number == pytest.approx(of["T1"].number)
    assert 0 < of["path_state_feedback_p50"].number <= of["path_state_feedback_p99"].number
    details = of["path_state_feedback_misses"].details
    assert details["misses"] == of["path_state_feedback_misses"].number <= details["passages"]


def test_rates_are_those_of_the_loops(trial):
    """In the time of the machine, which is not the simulator's where that is late."""
    of = trial.measurements
    assert of["rate_joint_states"].number == pytest.approx(1000 / of["T3mean"].number, rel=0.1)
    nominal_hz = 1e9 / PUBLISH_PERIOD_NS
    assert 0.5 * nominal_hz < of["rate_tf"].number < 1.05 * nominal_hz
    assert of["gap_tf"].number > PUBLISH_PERIOD_NS / 1e6 * 0.9


@pytest.mark.acceptance  # the recording pauses for the names of nodes, and the short run has none of such pauses
def test_process_is_found_by_its_name_or_its_nodes(project):
    metrics = '"cpu:state_publisher", "cpu:node:/robot_state_publisher"'
    project.write("pyproject.toml", f"{SETTINGS}[tool.ldos]\nmetrics = [{metrics}]\n")
    code, output = project.run("--ldos-trials=1", "--ldos-stack=embedded", "-q")
    assert code == 0, output
    (trial,) = project.saved().motions
    of = trial.measurements
    assert of["cpu_state_publisher"].number == of["cpu_node_robot_state_publisher"].number > 10


def test_sum_covers_only_processes_under_test(trial):
    """The goal client, which makes them work, is none of them."""
    of = trial.measurements
    parts = {name: value for name, value in of["cpu_all"].details.items() if name.startswith("of_")}
    assert set(parts) == {f"of_{name}_ms" for name in NAMES}
    assert sum(parts.values()) == pytest.approx(of["cpu_all"].number)
    assert parts["of_state_publisher_ms"] == of["cpu_state_publisher"].number


def test_memory_covers_only_the_processes(trial):
    of = trial.measurements
    found = of["memory_move_group"]
    assert of["memory_all"].details["of_move_group_mb"] == found.number
    assert 20 < found.number < found.details["resident_mb"]
    assert found.source.name == "peak of memory"


def test_switches_include_those_of_the_simulators_cycle(trial):
    """It sleeps between its steps, of which there are some hundred a second on any machine."""
    of = trial.measurements
    assert of["switches_simulator"].number > 0.1 * of["T4"].number


@pytest.mark.acceptance
def test_absent_node_is_refused_before_the_first_trial(project):
    project.write("pyproject.toml", SETTINGS + '[tool.ldos]\nmetrics = ["cpu:node:/move_gruop"]\n')
    code, output = project.run("--ldos-trials=1", "--ldos-stack=embedded", "-q")
    assert code != 0
    assert "metric 'cpu:node:/move_gruop': no node of the stack is called '/move_gruop'; it has " in output
    assert "did you mean '/move_group'?" in output
    assert project.saved().trials == ()
