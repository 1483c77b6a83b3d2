"""Runs of the real embedded stack in a project of their own, and what they may not leave behind."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from pytest_ldos.recording.lttng import lttng_available
from pytest_ldos.stack.embedded.backend import embedded_available
from pytest_ldos.trial.artifacts import read_trials
from pytest_ldos.trial.record import TrialSet

OURS = {
    "simulator",
    "move_group",
    "robot_state_pub",
    "goal_client",
    "flood_publisher",
    "flood_counter",
    "lttng-sessiond",
}

SCENARIO = """
import pytest

@pytest.mark.baseline
def test_reach(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack))
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = [each.reason for each in (embedded_available(), lttng_available()) if not each.ok]
    for item in items:
        if reasons and "integration/embedded" in str(item.path):
            item.add_marker(pytest.mark.skip(reason="; ".join(reasons)))


def running() -> set[int]:
    """Pids of everything a run of ours may start, but zombies."""
    return {
        process.pid
        for process in psutil.process_iter(["name", "status"])
        if process.info["name"] in OURS and process.info["status"] != psutil.STATUS_ZOMBIE
    }


def shared_memory() -> set[str]:
    return {file.name for file in Path("/dev/shm").iterdir()}


@dataclass
class Project:
    """A folder with scenario tests, run in processes of their own."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, "utf-8")

    def start(self, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        return subprocess.Popen(
            command, cwd=self.path, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=180)
        return process.returncode, output

    def saved(self, scenario: str = "baseline") -> TrialSet:
        (file,) = self.path.glob(f".ldos/runs/*/{scenario}/trials.json")
        return read_trials(file)


def make_project(path: Path) -> Project:
    environment = {**os.environ, "LDOS_LOCK": f"ldos-test-{secrets.token_hex(8)}", "COLUMNS": "120"}
    project = Project(path, environment)
    project.write("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--strict-markers'\n")
    project.write("test_scenario.py", SCENARIO)
    return project


@pytest.fixture
def project(tmp_path) -> Project:
    return make_project(tmp_path)


@pytest.fixture
def leaves_nothing() -> Iterator[Callable[[], None]]:
    """Fails a test that leaves a process or shared memory behind."""
    before, memory = running(), shared_memory()

    def check() -> None:
        assert running() <= before
        assert shared_memory() <= memory

    yield check
    check()
