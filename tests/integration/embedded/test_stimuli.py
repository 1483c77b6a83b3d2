"""Each stimulus that the embedded stack takes, from settings to the record, with the real stack."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.integration.project import Project

EXAMPLE = Path(__file__).parents[3] / "examples/own_stimulus"
NAMES = [f"panda_joint{number}" for number in range(1, 8)]
REST = "velocities: [0, 0, 0, 0, 0, 0, 0], accelerations: [0, 0, 0, 0, 0, 0, 0]"

ACTION = """
[tool.pytest.ini_options]

[tool.ldos.stack]
kind = "embedded"
stimulus = "action"
goals = "goals.yaml"

[tool.ldos.stimulus.action]
name = "/panda_arm_controller/follow_joint_trajectory"
type = "control_msgs/action/FollowJointTrajectory"
"""

WINDOW = """
[tool.pytest.ini_options]

[tool.ldos.stack]
kind = "embedded"
stimulus = "window"

[tool.ldos.stimulus.window]
seconds = 0.5
"""


def turn(first: float, last: float, *, joints: str = "joint_names") -> str:
    """A trajectory in which the first joint turns, as fields of the action's goal."""
    others = "-0.7853981633974483, 0, -2.356194490192345, 0, 1.5707963267948966, 0.7853981633974483"
    return (
        f"{{trajectory: {{{joints}: [{', '.join(NAMES)}], points: ["
        f"{{positions: [{first}, {others}], {REST}}}, "
        f"{{positions: [{last}, {others}], {REST}, time_from_start: {{nanosec: 300000000}}}}]}}}}"
    )


def goals(**changes: str) -> str:
    return f"goal_sets:\n  nod:\n    - {{name: nod, message: {turn(0, 0.05, **changes)}}}\nreset: {turn(0.05, 0)}\n"


def measure(project: Project, *, trials: int = 2) -> tuple[int, str]:
    return project.run("-m", "baseline", f"--ldos-trials={trials}", f"--ldos-block={trials}")


@pytest.mark.acceptance  # tests with rclpy call actions, too
def test_goals_of_any_action(project, leaves_nothing):
    project.write("pyproject.toml", ACTION)
    project.write("goals.yaml", goals())
    code, output = measure(project)
    assert code == 0, output
    saved = project.saved()
    assert [trial.goal for trial in saved.trials] == ["nod", "nod"]
    assert all(trial.succeeded for trial in saved.trials)
    assert [metric.name for metric in saved.metrics] == ["T4"]
    for trial in saved.trials:
        assert trial.measurements["T4"].source.name == "markers"
        assert 300 < trial.measurements["T4"].number < 2000


@pytest.mark.acceptance
def test_a_field_that_the_type_does_not_have(project):
    project.write("pyproject.toml", ACTION)
    project.write("goals.yaml", goals(joints="joint_nmaes"))
    code, output = measure(project)
    assert code != 0
    assert "JointTrajectory has no field 'joint_nmaes'" in output
    assert "did you mean 'joint_names'?" in output
    assert "Traceback" not in output


@pytest.mark.acceptance
def test_unknown_action(project):
    project.write("pyproject.toml", ACTION.replace("FollowJointTrajectory", "FollowTheLeader"))
    project.write("goals.yaml", goals())
    code, output = measure(project)
    assert code != 0
    assert "control_msgs/action/FollowTheLeader" in output
    assert "Traceback" not in output


@pytest.mark.acceptance
def test_a_window_of_the_running_stack(project, leaves_nothing):
    project.write("pyproject.toml", WINDOW)
    code, output = measure(project)
    assert code == 0, output
    saved = project.saved()
    assert saved.stack_kind == "embedded-window"
    assert [metric.name for metric in saved.metrics] == ["cpu_all", "memory_all"]
    assert [trial.stamps_ns["result"] - trial.stamps_ns["goal_sent"] >= 500_000_000 for trial in saved.trials] == [
        True,
        True,
    ]


@pytest.mark.acceptance
def test_a_topology_is_a_stack(project, leaves_nothing):
    project.write("pyproject.toml", WINDOW.replace('kind = "embedded"', 'topology = "pick_cell"'))
    code, output = measure(project)
    assert code == 0, output
    saved = project.saved()
    assert saved.stack_kind == "topology-pick_cell"
    assert saved.fingerprint.versions["topology"]
    assert all(trial.succeeded for trial in saved.trials)


@pytest.mark.acceptance
def test_user_program(project, leaves_nothing):
    shutil.copytree(EXAMPLE, project.path, dirs_exist_ok=True)
    (project.path / "test_scenario.py").unlink()
    settings = (project.path / "pyproject.toml").read_text("utf-8")
    project.write("pyproject.toml", f'{settings}\n[tool.ldos]\nmetrics = ["number:total:higher"]\n')
    code, output = measure(project)
    assert code == 0, output
    for trial in project.saved().trials:
        assert trial.numbers == {"total": 2666646666700000.0}
        assert trial.measurements["number_total"].number == 2666646666700000.0
        assert trial.measurements["T4"].source.name == "stimulus' stamps"


@pytest.mark.acceptance
def test_program_that_reports_executing(project):
    shutil.copytree(EXAMPLE, project.path, dirs_exist_ok=True)
    (project.path / "test_scenario.py").unlink()
    settings = (project.path / "pyproject.toml").read_text("utf-8")
    project.write("pyproject.toml", f"{settings}executing = true\n")
    program = (project.path / "work.py").read_text("utf-8")
    phases = '"planning": begin, "executing": begin + 3_000_000, "result": end'
    project.write("work.py", program.replace('"result": end', phases))
    code, output = measure(project)
    assert code == 0, output
    for trial in project.saved().trials:
        assert trial.measurements["T1"].number == 3.0
        assert trial.measurements["T2"].number == pytest.approx(trial.measurements["T4"].number - 3.0)


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("print('hello', flush=True); input()", "the stimulus printed a line that is not an event"),
        ("raise SystemExit(4)", "stimulus ended with exit code 4"),
        ('print(\'{"event": "refused", "message": "no button"}\', flush=True); input()', "no button"),
    ],
)
def test_program_that_does_not_start(project, program, message):
    shutil.copytree(EXAMPLE, project.path, dirs_exist_ok=True)
    (project.path / "test_scenario.py").unlink()
    project.write("work.py", program)
    code, output = measure(project, trials=1)
    assert code != 0
    assert message in output
    assert "Traceback" not in output
