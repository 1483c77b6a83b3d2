"""Faults that a stack of ROS 2 nodes supports, and refusals of others."""

from __future__ import annotations

import pytest

from pytest_ldos.base.errors import BringUpFailed, ConfigurationError
from pytest_ldos.robot.stack.goals import HOME, REACH
from pytest_ldos.robot.stack.ros2.stimuli import demand_plantable, fault_arguments, out_of_reach
from pytest_ldos.robot.stack.senders import to_command
from pytest_ldos.scenario.model import FaultSpec, Ros2Spec, StackSpec
from pytest_ldos.scenario.words import StackKind

OWN = Ros2Spec(launch_file="my_robot/stack.launch.py")
PLANNING = "ompl:\n  ldos_planner:\n    planning_delay_ms: 0.0\n    planning_delay_share: 0.0\n  range: 0.0\n"
CONTROLLERS = "controller_manager:\n  ros__parameters:\n    update_rate: 500  # Hz\n    other_update_rate: 3\n"


def stack(*, ros2: Ros2Spec | None = None, **faults: float) -> StackSpec:
    return StackSpec(kind=StackKind.ROS2, ros2=ros2 or Ros2Spec(), faults=FaultSpec(**faults))


@pytest.mark.parametrize(
    "faults",
    [
        {},
        {"failure_rate": 0.3, "cpu_steal": 0.2},
        {"control_rate_hz": 400},
        {"planning_delay_ms": 5, "planning_delay_share": 0.1, "callback_delay_ms": 1},
    ],
)
def test_faults_that_can_be_planted(faults):
    demand_plantable(stack(**faults))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (stack(ros2=OWN, planning_delay_ms=5), "cannot be given planning_delay_ms"),
        (
            stack(ros2=OWN, callback_delay_ms=0.1, transport_delay_ms=1, cpu_steal=0.1),
            "callback_delay_ms, transport_delay_ms:",
        ),
        (stack(transport_delay_ms=1), "transport_delay_ms.*\n.*--ldos-stack=embedded"),
        (stack(ros2=OWN, control_rate_drop=0.1), "control_rate_drop.*\n.*plant cpu_steal, failure_rate, or"),
    ],
)
def test_unsupported_faults_are_refused(spec, message):
    with pytest.raises(ConfigurationError, match=message):
        demand_plantable(spec)


def test_a_control_rate_is_written_for_the_launch_file(workspace, tmp_path):
    workspace.add("ldos_panda_config", files={"config/ros2_controllers.yaml": CONTROLLERS})
    assert fault_arguments(stack(cpu_steal=0.5), tmp_path) == {}
    for spec, rate in ((stack(control_rate_drop=0.2), 400), (stack(control_rate_hz=250.4), 250)):
        arguments = fault_arguments(spec, tmp_path)
        assert arguments == {"controllers": str(tmp_path / "controllers.yaml")}
        assert (tmp_path / "controllers.yaml").read_text() == CONTROLLERS.replace("500", str(rate))


def test_the_callback_of_joint_states_is_late_by_an_argument(tmp_path):
    assert fault_arguments(stack(callback_delay_ms=4), tmp_path) == {"callback_delay_ms": "4"}


def test_delays_of_planning_are_written_for_the_launch_file(workspace, tmp_path):
    workspace.add(
        "ldos_panda_config", files={"config/ompl_planning.yaml": PLANNING, "config/ros2_controllers.yaml": CONTROLLERS}
    )
    with pytest.raises(
        BringUpFailed, match=r"planning_delay_share: .* ldos_planner is not built\n.*ros-packages ldos_p"
    ):
        fault_arguments(stack(planning_delay_share=0.15), tmp_path)
    workspace.add("ldos_planner")
    arguments = fault_arguments(stack(planning_delay_share=0.15), tmp_path)
    assert arguments == {"planning": str(tmp_path / "planning.yaml")}
    assert (tmp_path / "planning.yaml").read_text() == PLANNING.replace("share: 0.0", "share: 0.15")
    both = fault_arguments(stack(planning_delay_ms=5, control_rate_hz=400), tmp_path)
    assert sorted(both) == ["controllers", "planning"]
    assert (tmp_path / "planning.yaml").read_text() == PLANNING.replace("ms: 0.0", "ms: 5.0")


def test_configuration_of_another_package(workspace, tmp_path):
    with pytest.raises(BringUpFailed, match=r"update_rate cannot be changed.*\n.*rebuild ros_ws"):
        fault_arguments(stack(control_rate_hz=400), tmp_path)
    workspace.add("ldos_panda_config", files={"config/ros2_controllers.yaml": "controller_manager: {}\n"})
    with pytest.raises(BringUpFailed, match="update_rate cannot be changed"):
        fault_arguments(stack(control_rate_hz=400), tmp_path)


@pytest.mark.parametrize("goal", [REACH, HOME])
def test_goal_with_an_injected_failure_is_unreachable(goal):
    command = to_command(StackSpec(), goal, goal_id="0" * 32, seed=None, trial=None, start=None)
    lost = out_of_reach(command)
    assert lost.goal.name == goal.name
    assert lost.goal.pose is not None
    assert lost.goal.pose.position[0] > 100
    assert lost.planning_time_s < command.planning_time_s
    assert lost.goal_id == command.goal_id
