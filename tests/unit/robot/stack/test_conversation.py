"""Talking with a goal client that is a real process."""

from __future__ import annotations

import sys

import pytest

from pytest_ldos.host.processes import ProcessGroup
from pytest_ldos.robot.stack.goals import REACH
from pytest_ldos.robot.stack.senders import Conversation, to_command
from pytest_ldos.scenario.model import StackSpec

COMMAND = to_command(StackSpec(), REACH, goal_id="f" * 32, seed=None, trial=None, start=None)
REPORT = """
import json, sys
print(json.dumps({"event": "ready"}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)["goal_id"]
    for goal_id in ("0" * 32, asked):
        print(json.dumps({"event": "result", "goal_id": goal_id, "error_code": 1, "message": "", "stamps_ns": {},
            "plan_duration_ns": None, "plan_points": 0, "planning_time_s": 0.0, "position_error_m": None,
            "rotation_error_rad": None}), flush=True)
"""


@pytest.fixture
def converse(tmp_path):
    group = ProcessGroup(log_directory=tmp_path)

    def start(code: str) -> Conversation:
        return Conversation(group.start("goal_client", [sys.executable, "-c", code], talk=True), group.describe_ended)

    yield start
    group.stop()


def test_a_report_of_an_earlier_goal_is_passed_over(converse):
    conversation = converse(REPORT)
    assert conversation.await_ready(60)
    report = conversation.ask(COMMAND)
    assert report is not None
    assert report.goal_id == COMMAND.goal_id


def test_a_client_that_ends_is_not_waited_for(converse):
    assert not converse("raise SystemExit(3)").await_ready(60)


@pytest.mark.parametrize("word", ["[INFO] ready", '{"event": "danced"}', "3", '{"event": "result"}'])
def test_line_that_is_not_an_event_is_reported(converse, word):
    conversation = converse(f"import time; print({word!r}, flush=True); time.sleep(120)")
    assert not conversation.await_ready(60)
    assert conversation.misunderstood == f"the goal client printed a line that is not an event: {word!r}"
