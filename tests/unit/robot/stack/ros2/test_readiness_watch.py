"""The readiness process: its output, and its end, which is awaited only when needed."""

from __future__ import annotations

import time

import pytest

from pytest_ldos.robot.stack.ros2 import backend as readiness_watch
from pytest_ldos.robot.stack.ros2.backend import ReadinessWatch
from pytest_ldos.scenario.model import StackSpec
from tests.builders.stressors import wait_until

READY = "print('[]', flush=True)\n"
FAREWELL = (
    READY
    + """
import time
from pathlib import Path
while not Path("{folder}/go").exists(): time.sleep(0.01)
time.sleep(0.3)
Path("{folder}/gone").touch()
"""
)


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """Watches a program instead of the readiness node, which needs ROS 2."""
    monkeypatch.setattr(readiness_watch, "_READINESS", "reporter")
    monkeypatch.setattr(readiness_watch, "_END_S", 60.0)

    def of(program: str) -> ReadinessWatch:
        (tmp_path / "reporter.py").write_text(program, encoding="utf-8")
        environment = {"PYTHONPATH": str(tmp_path)}
        return ReadinessWatch(StackSpec(), needs_clock=False, environment=environment, log_directory=tmp_path)

    return of


def await_ready(asked: ReadinessWatch) -> None:
    wait_until(lambda: asked.is_ready)


def test_last_message_of_the_watcher_is_awaited(watch, tmp_path):
    with watch(FAREWELL.format(folder=tmp_path)) as asked:
        await_ready(asked)
        (tmp_path / "go").touch()
        asked.await_end()
        assert (tmp_path / "gone").exists()


def test_watcher_that_does_not_end_is_terminated(watch, monkeypatch):
    monkeypatch.setattr(readiness_watch, "_END_S", 0.1)
    with watch(f"{READY}import time; time.sleep(600)") as asked:
        await_ready(asked)
        began_s = time.monotonic()
        asked.await_end()
        assert time.monotonic() - began_s < 60


def test_silent_end_is_a_failure(watch):
    with watch("raise SystemExit('no rclpy')") as asked:
        asked.await_end()
        assert "no rclpy" in asked.what_failed()
        assert not asked.is_ready
