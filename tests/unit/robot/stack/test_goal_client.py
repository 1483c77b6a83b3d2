"""The goal client of the embedded stack with a planner that refuses its parameters."""

from __future__ import annotations

from pytest_ldos.robot.dds.action import IntegerParameters
from pytest_ldos.robot.dds.node import Node
from pytest_ldos.robot.stack.embedded.goal_client import GoalClient
from pytest_ldos.robot.stack.embedded.panda import FAILURE_PARAMETER, SEED_PARAMETER
from pytest_ldos.robot.stack.goals import REACH, ErrorCode
from pytest_ldos.robot.stack.lines import parse_event
from pytest_ldos.robot.stack.senders import to_command
from pytest_ldos.scenario.model import StackSpec
from tests.builders.stressors import wait_until


def test_refused_parameters_end_the_goal(context, capsys):
    IntegerParameters(Node(context, "move_group"), (FAILURE_PARAMETER,))
    client = GoalClient(Node(context, "client"))
    wait_until(client._parameters.server_is_ready)
    command = to_command(StackSpec(), REACH, goal_id="0" * 32, seed=7, trial=None, start=None)
    context.executor.post(lambda: client.move(command))
    lines: list[str] = []
    wait_until(lambda: lines.extend(capsys.readouterr().out.splitlines()) or lines)
    (report,) = map(parse_event, lines)
    assert (report.goal_id, report.error_code) == ("0" * 32, ErrorCode.FAILURE)
    assert report.message == f"move_group refused the goal's parameters: parameter '{SEED_PARAMETER}' is not declared"
