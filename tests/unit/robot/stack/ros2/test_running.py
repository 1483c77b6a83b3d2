"""Stacks of nodes that run already."""

from __future__ import annotations

import os
import subprocess

import psutil
import pytest

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.host.availability import Availability
from pytest_ldos.record import choose
from pytest_ldos.record.choose import choose_recorder
from pytest_ldos.robot.stack.ros2 import backend, running
from pytest_ldos.robot.stack.ros2.running import RunningBackend, RunningTree
from pytest_ldos.scenario.model import StackSpec
from pytest_ldos.scenario.words import StackKind, StimulusKind
from tests.builders.needs import needs_lttng


class Stack:
    """In place of the real one, which would wait for ROS 2."""

    def __init__(self, *_, members, **__):
        self.pids = set(members.pids())

    def become_ready(self, *_):
        pass


@needs_lttng
def test_stack_consists_of_the_recorded_processes(tmp_path, monkeypatch):
    """A process that registers after the recording began belongs to neither."""
    registered = {os.getpid(): "talker"}
    monkeypatch.setattr(choose, "registered_processes", lambda: dict(registered))
    monkeypatch.setattr(running, "ros2_available", lambda _: Availability(True))
    monkeypatch.setattr(backend, "ros2_info", lambda *_: None)
    monkeypatch.setattr(backend, "Ros2Stack", Stack)
    recorder = choose_recorder(tmp_path / "trace", tmp_path, switches=True, is_attached=True)
    registered[psutil.Process().ppid()] = "late"
    spec = StackSpec(kind=StackKind.RUNNING, stimulus=StimulusKind.WINDOW)
    stack = RunningBackend(spec, recorder=recorder, log_directory=tmp_path)
    try:
        assert stack.start().pids == {os.getpid()} == {*recorder.processes}
    finally:
        stack.stop()


def test_process_that_ended_before_its_stack_was_measured():
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(BringUpFailed, match=rf"talker \(pid {ended.pid}\) ended before it was measured"):
        RunningTree({ended.pid: "talker"})
