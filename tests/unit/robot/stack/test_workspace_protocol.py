"""The workspace's goal client has the keys of the protocol, by its sources."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from pathlib import Path

import pytest_ldos
from pytest_ldos.base.ros2 import Phase
from pytest_ldos.robot.stack.goals import REACH
from pytest_ldos.robot.stack.lines import MoveCommand, MoveReport, ReadyEvent, TrialTag

SOURCES = Path(__file__).parents[4] / "ros_ws/src/ldos_goal_client/src"


def text_of(name: str) -> str:
    return (SOURCES / name).read_text("utf-8")


ONLY_FOR_THE_EMBEDDED_CLIENT = {"failure"}


def keys_of(what: str, name: str = "move_command.cpp") -> list[str]:
    """The keys that it accepts in an object."""
    found = re.search(rf'require_keys\(\s*\w+, "{what}", \{{(.*?)\}}', text_of(name), re.DOTALL)
    assert found is not None, what
    return re.findall(r'"(\w+)"', found[1])


def test_commands():
    assert sorted(keys_of("the command")) == sorted(
        field.name for field in fields(MoveCommand) if field.name not in ONLY_FOR_THE_EMBEDDED_CLIENT
    )
    assert sorted(keys_of("'goal'")) == sorted(asdict(REACH))
    assert sorted(keys_of("'pose'")) == sorted(asdict(REACH)["pose"])
    assert sorted(keys_of("'trial'")) == sorted(field.name for field in fields(TrialTag))


def test_reports():
    keys = re.findall(r'^  object\["(\w+)"\]', text_of("move_report.cpp"), re.MULTILINE)
    assert keys == ["event", *(field.name for field in fields(MoveReport))]
    kinds = re.findall(r'"event"(?:\] = |, )"(\w+)"', text_of("move_report.cpp"))
    assert kinds == [ReadyEvent.kind, MoveReport.kind]


def test_phases():
    assert re.findall(r'return "(\w+)";', text_of("phase.cpp")) == [str(phase) for phase in Phase]


def test_seeds_have_the_same_mark_wherever_they_are_written_and_read():
    package = Path(pytest_ldos.__file__).parent
    writers = (package / "robot/stack/ros2/planning.py", SOURCES / "move_request.cpp")
    reader = SOURCES.parents[1] / "ldos_planner/src/seed.cpp"
    marks = [re.findall(r'"(#\w+=)', file.read_text("utf-8")) for file in (*writers, reader)]
    assert marks == [["#ldos_seed="]] * 3
