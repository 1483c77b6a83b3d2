"""The real stack, measured: a short run on each middleware, and nothing left of it."""

from __future__ import annotations

import re
import signal
import time

import pytest

from pytest_ldos.series import Missing
from tests.integration.ros2.stack.conftest import running


def test_a_short_run_measures_everything_but_a_simulator(project, rmw, leaves_nothing):
    code, output = project.run("-m", "baseline", f"--ldos-rmw={rmw}", "--ldos-trials=3", "--ldos-warmup=1")
    assert code == 0, output
    assert "ldos: stack ros2 jazzy (Panda, sim mock, MoveIt 2." in output
    trials = project.saved()
    assert [trial.outcome for trial in trials.trials] == ["success"] * 3
    assert trials.stack_kind == "ros2-mock"
    assert trials.fingerprint.rmw == rmw
    assert trials.fingerprint.versions[rmw]
    assert trials.discarded_events == 0
    for trial in trials.trials:
        assert trial.seed is None
        assert trial.position_error_m is not None
        assert trial.position_error_m < 0.001
        numbers = {name: each.number for name, each in trial.measurements.items()}
        assert 1 < numbers["T1"] < 1000
        assert 500 < numbers["T2"] < 10_000
        assert 0 <= numbers["T2x"] < 1000
        assert numbers["T3"] is not None
        assert numbers["T4"] > numbers["T2"]
        assert isinstance(trial.measurements["T5"].value, Missing)
    again, output = project.run("-m", "baseline", f"--ldos-rmw={rmw}", "--ldos-trials=3", "--ldos-warmup=0")
    assert again in {0, 10}, output
    assert re.search(r"baseline: (passed|improved|regressed|inconclusive)", output)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_nothing(project, number, leaves_nothing):
    before = running()
    process = project.start("-m", "baseline", "--ldos-trials=50")
    assert process.stdout is not None
    for line in process.stdout:
        if "trial 1 of 50" in line:
            break
    process.send_signal(number)
    process.stdout.close()
    process.wait(timeout=60)
    deadline = time.monotonic() + 30
    while running() - before and time.monotonic() < deadline:
        time.sleep(0.05)
