"""The real stack on Gazebo: the simulator is measured as well, and ends with the rest."""

from __future__ import annotations

from tests.integration.ros2.stack.conftest import needs_gazebo

pytestmark = needs_gazebo

KILLS_THE_SIMULATOR = """
import threading
import psutil, pytest
from pytest_ldos.robot.stack.ros2.backend import Ros2Stack

move = Ros2Stack.move

def move_and_kill(self, goal, *, goal_id, seed, trial, **more):
    if trial is not None:
        (simulator,) = [each for each in psutil.process_iter() if each.pid in self.pids() and each.name() == "ruby"]
        threading.Timer(1.0, simulator.kill).start()
    return move(self, goal, goal_id=goal_id, seed=seed, trial=trial, **more)

Ros2Stack.move = move_and_kill
"""


def test_a_short_run_measures_the_simulator_too(project, rmw, leaves_nothing):
    project.environment["LDOS_SIM"] = "gz"
    code, output = project.run("-m", "baseline", f"--ldos-rmw={rmw}", "--ldos-trials=2", "--ldos-warmup=0")
    assert code == 0, output
    trials = project.saved()
    assert trials.stack_kind == "ros2-gz"
    assert trials.discarded_events == 0
    assert [trial.outcome for trial in trials.trials] == ["success"] * 2
    for trial in trials.trials:
        for name, measurement in trial.measurements.items():
            assert measurement.number is not None, name
        assert trial.measurements["T3"].source.name == "control probe"
        assert trial.measurements["T5"].source.name == "simulator probe"
        assert 0.5 < trial.measurements["T5"].details["real_time_factor"] < 1.05


def test_a_simulator_that_is_killed_ends_the_trial_at_once(project, leaves_nothing):
    project.environment["LDOS_SIM"] = "gz"
    project.write("conftest.py", KILLS_THE_SIMULATOR)
    code, output = project.run("-m", "baseline", "--ldos-trials=2", "--ldos-warmup=0")
    assert code == 10, output
    (trial,) = project.saved().trials
    assert trial.outcome == "stack_died"
    assert "was killed by SIGKILL" in trial.message
