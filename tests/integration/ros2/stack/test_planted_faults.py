"""Faults that are planted in the real stack without changing a node of it."""

from __future__ import annotations

import pytest

from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.lines import TrialTag, plant_failure

FAILURE_RATE = 0.7
TRIALS = 3
FAULTS = f"""
[tool.ldos.stack.faults]
failure_rate = {FAILURE_RATE}
control_rate_drop = 0.2
"""
STAGES = (
    "up to request adapters",
    "goals",
    "search",
    "simplification",
    "interpolation",
    "planted delay",
    "response adapters",
)
STEAL = """
[tool.ldos.stack.faults]
cpu_steal = 0.8
"""


def test_goals_fail_and_the_loop_is_slower(project, leaves_nothing):
    project.write("pyproject.toml", (project.path / "pyproject.toml").read_text() + FAULTS)
    _, output = project.run("-m", "baseline", f"--ldos-trials={TRIALS}", "--ldos-warmup=0")
    trials = project.saved().trials
    assert len(trials) == TRIALS, output
    planted = [plant_failure(FAILURE_RATE, seed=each.index + 1, trial=TrialTag("", 0)) for each in trials]
    assert [each.outcome is OutcomeClass.SUCCESS for each in trials] == [failure is None for failure in planted]
    assert {failure is None for failure in planted} == {True, False}
    for each in trials:
        if each.succeeded:
            assert each.measurements["T3"].details["mean_rate_hz"] == pytest.approx(400, rel=0.03)
            assert each.measurements["T3"].number > 0.4
        else:
            assert each.outcome is OutcomeClass.PLANNING_FAILED
            assert each.measurements["T2"].number is None


def test_cpu_thief_makes_planning_slow(project, leaves_nothing):
    """Not surely the control loop, which runs at a real-time priority where that is permitted."""
    project.write("pyproject.toml", (project.path / "pyproject.toml").read_text() + STEAL)
    _, output = project.run("-m", "baseline", "--ldos-trials=1", "--ldos-warmup=0")
    (trial,) = project.saved().trials
    assert trial.measurements["T1"].number > 60.0, output


def test_planning_takes_longer_by_the_injected_delay(project, leaves_nothing):
    delay_ms = 40
    planted = f"\n[tool.ldos.stack.faults]\nplanning_delay_ms = {delay_ms}\n"
    project.write("pyproject.toml", (project.path / "pyproject.toml").read_text() + planted)
    _, output = project.run("-m", "baseline", f"--ldos-trials={TRIALS}", "--ldos-warmup=0")
    trials = project.saved().trials
    assert len(trials) == TRIALS, output
    assert min(each.measurements["T1"].number for each in trials) > delay_ms
    for each in trials:
        stages = [name for name in each.segments_ns["planning"] if name.startswith("planning stage: ")]
        assert stages == [f"planning stage: {name}" for name in STAGES], each.segments_ns
        assert each.segments_ns["planning"]["planning stage: planted delay"] > delay_ms * 1e6


def test_state_feedback_waits_for_a_late_callback(project, leaves_nothing):
    planted = "\n[tool.ldos.stack.faults]\ncallback_delay_ms = 4\n"
    project.write("pyproject.toml", (project.path / "pyproject.toml").read_text() + planted)
    _, output = project.run("-m", "baseline", "--ldos-trials=1", "--ldos-warmup=0")
    (trial,) = project.saved().trials
    run_ns = trial.segments_ns["state feedback"]["callback run: /robot_state_publisher: /joint_states"]
    assert run_ns > 4e6, output


def test_faults_that_need_a_changed_node_are_refused(project, leaves_nothing):
    planted = "\n[tool.ldos.stack.faults]\ntransport_delay_ms = 5\n"
    project.write("pyproject.toml", (project.path / "pyproject.toml").read_text() + planted)
    code, output = project.run("-m", "baseline", "--ldos-trials=1")
    assert code == 1
    assert "this stack cannot be given transport_delay_ms" in output
    assert "trial 1" not in output
