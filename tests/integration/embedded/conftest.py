"""Runs of the real embedded stack in a project of their own, and what they may not leave behind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders.needs import embedded_here, lttng_here
from tests.integration.embedded.short_run import ShortRun
from tests.integration.project import Project, left_in_memory, make_project, running, shared_memory


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = [each.reason for each in (embedded_here(), lttng_here()) if not each.ok]
    for item in items:
        if reasons and "integration/embedded" in str(item.path):
            item.add_marker(pytest.mark.skip(reason="; ".join(reasons)))


PYTESTS_OWN = "pytest-of-"
"""Beginning of the folder in which pytest keeps what tests made."""


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Temporary folder of a run, with a short name because of its sockets."""
    with tempfile.TemporaryDirectory(prefix="ldos-test-") as folder:
        yield Path(folder)


@pytest.fixture
def project(tmp_path, temporary) -> Project:
    made = make_project(tmp_path)
    made.environment["TMPDIR"] = str(temporary)
    return made


@pytest.fixture
def leaves_no_process(temporary) -> Iterator[Callable[[], None]]:
    """Fails a test that leaves a process or a temporary file behind; other tests may run in parallel."""
    before = running()

    def check() -> None:
        assert running() <= before
        assert [each.name for each in temporary.iterdir() if not each.name.startswith(PYTESTS_OWN)] == []

    yield check
    check()


@pytest.fixture
def leaves_nothing(leaves_no_process) -> Iterator[Callable[[], None]]:
    """Fails a test that leaves a process, shared memory or a temporary file behind."""
    memory = shared_memory()

    def check() -> None:
        leaves_no_process()
        assert left_in_memory(memory) == set()

    yield check
    check()


@pytest.fixture(scope="session")
def short_run(tmp_path_factory) -> ShortRun:
    return ShortRun(make_project(tmp_path_factory.mktemp("short_run")))
