"""Events of the launcher, and the resulting state of the launch."""

from __future__ import annotations

import pytest

from pytest_ldos.robot.stack.ros2.state import (
    LaunchFailed,
    LaunchWatch,
    ProcessBegan,
    ProcessEnded,
    parse_event,
    to_line,
)


@pytest.mark.parametrize(
    "event", [ProcessBegan("move_group-1", 42), ProcessEnded("spawner-2", 43, -9), LaunchFailed("no such file")]
)
def test_events_round_trip(event):
    assert parse_event(to_line(event)) == event


@pytest.mark.parametrize("line", ["{}", '{"event": "Danced"}', "move_group is here", ""])
def test_other_lines_are_refused(line):
    with pytest.raises(ValueError, match=r"unknown event|Expecting value"):
        parse_event(line)


def test_processes_that_ended_normally_are_no_failure():
    watch = LaunchWatch()
    for event in (ProcessBegan("move_group-1", 1), ProcessBegan("spawner-2", 2), ProcessEnded("spawner-2", 2, 0)):
        watch.take(event)
    assert watch.what_failed() == ""
    assert watch.pids() == {1, 2}


@pytest.mark.parametrize(
    ("code", "words"),
    [(1, "ended with exit code 1"), (-9, "was killed by SIGKILL"), (-99, "was killed by signal 99")],
)
def test_first_failed_process_is_named_with_its_end(code, words):
    watch = LaunchWatch()
    watch.take(ProcessEnded("spawner-2", 2, 0))
    watch.take(ProcessEnded("move_group-1", 1, code))
    watch.take(ProcessEnded("another-3", 3, 2))
    assert watch.what_failed() == f"move_group-1 {words}"


def test_a_failed_launch_comes_first():
    watch = LaunchWatch()
    watch.follow([to_line(ProcessEnded("a-1", 1, 2)), to_line(LaunchFailed("no such package"))])
    assert watch.what_failed() == "no such package"


def test_invalid_output_of_the_launcher_is_reported():
    watch = LaunchWatch()
    watch.follow(["[INFO] hello\n"])
    assert watch.what_failed() == "the launcher printed a line that is not an event: '[INFO] hello'"


def test_ended_launch_is_not_a_stack():
    watch = LaunchWatch()
    watch.follow([to_line(ProcessBegan("a-1", 1)), to_line(ProcessEnded("a-1", 1, 0))])
    assert watch.what_failed() == "the launch file ended, and with it its processes"


def test_running_processes_have_the_names_of_the_launch_file():
    """A respawned process keeps its name, also where launch counts on."""
    watch = LaunchWatch()
    for event in (
        ProcessBegan("move_group-1", 1),
        ProcessBegan("spawner-2", 2),
        ProcessBegan("my-node_3-3", 3),
        ProcessEnded("spawner-2", 2, 0),
        ProcessEnded("move_group-1", 1, -11),
        ProcessBegan("move_group-4", 4),
    ):
        watch.take(event)
    assert watch.running() == {3: "my-node_3", 4: "move_group"}
