"""Evidence of real time on ros2_control: a controller's own log of its allocations is the truth."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pytest_ldos.base import exit_codes
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.measure.metrics.declared import parts_of
from pytest_ldos.measure.metrics.evidence import IN_RUNS, RUNS, RUNS_WITH
from tests.builders.loops import HINGE, nodes_of, why_no_loop
from tests.builders.pages import ROOT
from tests.integration.project import Project, make_project

_NEEDS = ("controller_manager", "controller_interface", "joint_state_broadcaster", "ldos_control_probe")
pytestmark = pytest.mark.skipif(bool(why_no_loop(_NEEDS)), reason=why_no_loop(_NEEDS) or "ros2_control is sourced")

RATE_HZ = 500
EVERY = 100
CONTROLLERS = ["joint_state_broadcaster", "planted_controller", "ldos_control_probe"]

LAUNCH = f"""
from launch import LaunchDescription
from launch_ros.actions import Node

ROBOT = '''{HINGE}'''

def generate_launch_description():
    types = {{
        "joint_state_broadcaster.type": "joint_state_broadcaster/JointStateBroadcaster",
        "planted_controller.type": "planted_controller/PlantedController",
        "ldos_control_probe.type": "ldos_control_probe/ControlProbe",
    }}
    return LaunchDescription([
        {nodes_of(RATE_HZ, "types")}
        Node(package="controller_manager", executable="spawner", arguments={CONTROLLERS}),
    ])
"""

PROJECT = f"""
[tool.pytest.ini_options]

[tool.ldos]
metrics = [METRICS]

[tool.ldos.stack]
launch_file = "loop.launch.py"
controllers = {CONTROLLERS}
control_rate_hz = {RATE_HZ}
stimulus = "window"

[tool.ldos.stimulus.window]
seconds = 2.0
""".replace("'", '"')


@pytest.fixture(scope="session")
def controller(tmp_path_factory) -> Path:
    """Prefix of the planted controller, built with the ROS 2 that is sourced."""
    folder = tmp_path_factory.mktemp("controller")
    source, prefix = ROOT / "tests/native/planted_controller", folder / "prefix"
    subprocess.run(["cmake", "-S", source, "-B", folder / "build", f"-DCMAKE_INSTALL_PREFIX={prefix}"], check=True)
    subprocess.run(["cmake", "--build", folder / "build", "--target", "install"], check=True)
    return prefix


@pytest.fixture
def loop(tmp_path, controller) -> Project:
    made = make_project(tmp_path)
    for name, folder in (("AMENT_PREFIX_PATH", controller), ("LD_LIBRARY_PATH", controller / "lib")):
        made.environment[name] = f"{folder}:{os.environ[name]}"
    made.environment |= {"LDOS_STACK": "ros2", "PLANTED_LOG": str(tmp_path / "log"), "PLANTED_EVERY": str(EVERY)}
    made.write("loop.launch.py", LAUNCH)
    return made


def measure(loop: Project, *metrics: str, trials: int = 2) -> tuple[int, str]:
    loop.write("pyproject.toml", PROJECT.replace("METRICS", ", ".join(f'"{each}"' for each in metrics)))
    return loop.run("-m", "baseline", f"--ldos-trials={trials}", "--ldos-confirm=0")


def logged(loop: Project, trial) -> int:
    """Allocations within a trial by the controller's own log."""
    log = np.fromfile(loop.environment["PLANTED_LOG"], dtype=np.int64)
    times_ns = log[2 : 2 + log[1]]
    begin_ns, end_ns = (trial.stamps_ns[phase] for phase in (Phase.GOAL_SENT, Phase.RESULT))
    return int(((times_ns >= begin_ns) & (times_ns <= end_ns)).sum())


def test_allocation_in_one_cycle_of_a_hundred_is_red_and_named(loop):
    code, output = measure(loop, "allocations:control loop")
    assert code == exit_codes.REGRESSED, output
    assert "planted_controller::PlantedController::allocate()" in output
    (metric,) = [each for each in loop.saved().metrics if each.asked_as == "allocations:control loop"]
    for trial in loop.saved().trials:
        found = trial.measurements[metric.name]
        assert found.details[RUNS] == pytest.approx(2 * RATE_HZ, abs=0.1 * RATE_HZ)
        parts = parts_of(metric, found)
        planted = sum(part for name, part in parts.items() if "PlantedController" in name) * found.details[RUNS]
        print(found, logged(loop, trial))
        assert abs(round(planted) - logged(loop, trial)) <= 1  # a cycle at the trial's ends is not whole
        assert round(planted) == pytest.approx(found.details[RUNS] / EVERY, abs=1)


def test_other_evidence_of_the_same_loop(loop):
    """Without the planted allocation, ros2_control's own are left."""
    loop.environment["PLANTED_EVERY"] = "0"
    kinds = ("allocations", "frees", "locks", "faults", "blocked")
    code, output = measure(loop, *(f"{kind}:control loop:any" for kind in kinds))
    assert code == 0, output
    for trial in loop.saved().trials:
        for kind in kinds:
            found = trial.measurements[f"{kind}_control_loop"]
            print(kind, found)
            assert found.number is not None, found
            assert found.details[RUNS_WITH] <= found.details[RUNS]
            assert found.details[RUNS_WITH] <= found.details[IN_RUNS] or not found.details[IN_RUNS]
            assert not any("PlantedController" in name for name in found.details)


def test_callback_of_another_process(loop):
    code, output = measure(loop, "allocations:/robot_state_publisher: /joint_states", trials=1)
    (trial,) = loop.saved().trials
    found = trial.measurements["allocations_robot_state_publisher_joint_states"]
    print(found)
    assert found.number is not None, output
    assert found.details[RUNS] > 0
    assert (code == exit_codes.REGRESSED) is (found.details[IN_RUNS] > 0)
