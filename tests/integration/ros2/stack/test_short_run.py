"""The real stack, measured: a short run on each middleware, and nothing left of it."""

from __future__ import annotations

import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from pytest_ldos.base.series import Missing
from tests.integration.project import Project, make_project
from tests.integration.ros2.stack.conftest import needs_gazebo, survivors


def test_short_run_measures_everything_except_a_simulator(project, rmw, leaves_nothing):
    code, output = project.run("-m", "baseline", f"--ldos-rmw={rmw}", "--ldos-trials=3", "--ldos-warmup=1")
    assert code == 0, output
    assert "(Panda, sim mock, MoveIt 2." in output
    trials = project.saved()
    assert [trial.outcome for trial in trials.trials] == ["success"] * 3
    assert trials.stack_kind == "ros2-mock"
    assert trials.fingerprint.rmw == rmw
    assert trials.fingerprint.versions[rmw]
    assert trials.discarded_events == 0
    for index, trial in enumerate(trials.trials):
        assert trial.seed == 1 + index
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
@pytest.mark.parametrize("sim", ["mock", pytest.param("gz", marks=needs_gazebo)])
def test_a_run_that_is_ended_leaves_nothing(project, sim, number, mark, leaves_nothing):
    project.environment["LDOS_SIM"] = sim
    process = project.start("-m", "baseline", "--ldos-trials=50")
    assert process.stdout is not None
    for line in process.stdout:
        if "trial 1 of 50" in line:
            break
    process.send_signal(number)
    process.stdout.close()
    process.wait(timeout=60)
    deadline = time.monotonic() + 30
    while survivors(mark) and time.monotonic() < deadline:
        time.sleep(0.05)


EXAMPLE = Path(__file__).parents[4] / "examples/ci/workspace"
INSTALLED, BY_PATH = "cell_bringup/cell.launch.py", "src/cell_bringup/launch/cell.launch.py"
OVERRIDE = """
import pytest
from pathlib import Path
from pytest_ldos.api import Ros2Spec, StackSpec

HERE = Path(__file__).parent

@pytest.fixture
def ldos_stack_spec():
    return StackSpec(
        goals=str(HERE / "goals.yaml"),
        ros2=Ros2Spec(
            launch_file=str(HERE / "src/cell_bringup/launch/cell.launch.py"),
            action="/cell/move_action",
            joint_states="/cell/joint_states",
            controller_manager="/cell/controller_manager",
            controllers=("weaver_states", "weaver_trajectories", "control_probe"),
            group="manipulator",
            base_frame="pedestal",
        ),
    )
"""


@pytest.mark.parametrize("by", ["table", "fixture"])
def test_user_robot_is_measured_by_a_table_or_a_fixture(tmp_path, by, leaves_nothing):
    folder = tmp_path / "cell"
    shutil.copytree(EXAMPLE, folder)
    project = Project(folder, {**make_project(tmp_path).environment, "LDOS_STACK": "ros2"})
    settings = (folder / "pyproject.toml").read_text("utf-8")
    project.write("pyproject.toml", settings.replace(INSTALLED, f"./{BY_PATH}"))
    if by == "fixture":
        project.write("pyproject.toml", "[tool.pytest.ini_options]\n")
        project.write("conftest.py", OVERRIDE)
    code, output = project.run("-m", "baseline", "--ldos-trials=2", "--ldos-warmup=0", "test_reach.py")
    assert code == 0, output
    trials = project.saved()
    assert [trial.outcome for trial in trials.trials] == ["success", "success"]
    assert trials.stack_kind == "ros2-cell-manipulator"
    for trial in trials.trials:
        assert trial.measurements["T1"].number is not None
        assert trial.measurements["T3"].source.name == "control probe"
