"""Runs of the real embedded stack in a project of their own, and what they may not leave behind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from pytest_ldos.record.lttng import lttng_available
from pytest_ldos.robot.stack.embedded.backend import embedded_available
from tests.builders.ours import is_of_others
from tests.integration.project import Project, make_project, shared_memory

OURS = {
    "simulator",
    "move_group",
    "robot_state_pub",
    "goal_client",
    "flood_publisher",
    "flood_counter",
    "guard",
    "cpu_thief",
    "stress-ng",
    "lttng-sessiond",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = [each.reason for each in (embedded_available(), lttng_available()) if not each.ok]
    for item in items:
        if reasons and "integration/embedded" in str(item.path):
            item.add_marker(pytest.mark.skip(reason="; ".join(reasons)))


PYTESTS_OWN = "pytest-of-"
"""Beginning of the folder in which pytest keeps what tests made."""


def running() -> set[int]:
    """Pids of everything a run of ours may start, but zombies and what others run here."""
    return {
        process.pid
        for process in psutil.process_iter(["name", "status"])
        if process.info["name"] in OURS
        and process.info["status"] != psutil.STATUS_ZOMBIE
        and not is_of_others(process.pid)
    }


@pytest.fixture
def temporary() -> Iterator[Path]:
    """What a run takes for the system's temporary folder; its name is short, because sockets lie there."""
    with tempfile.TemporaryDirectory(prefix="ldos-test-") as folder:
        yield Path(folder)


@pytest.fixture
def project(tmp_path, temporary) -> Project:
    made = make_project(tmp_path)
    made.environment["TMPDIR"] = str(temporary)
    return made


@pytest.fixture
def leaves_nothing(temporary) -> Iterator[Callable[[], None]]:
    """Fails a test that leaves a process, shared memory or a temporary file behind."""
    before, memory = running(), shared_memory()

    def check() -> None:
        assert running() <= before
        assert shared_memory() <= memory
        assert [each.name for each in temporary.iterdir() if not each.name.startswith(PYTESTS_OWN)] == []

    yield check
    check()
