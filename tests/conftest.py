"""Fixtures of all tests: recorded traces, and isolation from the machine's real runs."""

from __future__ import annotations

import gc
import os
import secrets
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.builders.ours import OURS

pytest_plugins = ["pytester", "tests.quiet"]

# The same examples in every run: what failed once fails again.
# How long an example takes says something about the machine alone.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
SCENARIOS = HERE / "scenarios"

STACKS = ("integration/embedded", "integration/ros2")
"""Folders whose tests run whole stacks, in real time: an arm that gets too little of a CPU does not arrive in time."""

MARKS = (
    "alone: needs the machine for itself: changes its control groups or takes its CPUs",
    "measures_time: asserts rates or durations: runs alone, and is skipped with the figure where others took the CPUs",
    "starts_nothing: in a folder of whole stacks, but ends before one starts: runs in parallel with other tests",
    "stack(name): the stack that a test of whole stacks starts, if it is not that of its folder (tests.platforms)",
    "acceptance: a long proof, of which `make test` has a representative: runs in `make acceptance`",
)


def pytest_configure(config: pytest.Config) -> None:
    for mark in MARKS:
        config.addinivalue_line("markers", mark)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        in_stacks = any(item.path.is_relative_to(HERE / folder) for folder in STACKS)
        if in_stacks and not item.get_closest_marker("starts_nothing"):
            item.add_marker(pytest.mark.measures_time)
        if item.path.is_relative_to(HERE / "acceptance"):
            item.add_marker(pytest.mark.acceptance)
        if any(item.get_closest_marker(name) for name in ("measures_time", "acceptance")):
            item.add_marker(pytest.mark.alone)


def pytest_collection_finish() -> None:
    """Exempts what was collected from garbage collection, a tenth of the time of all tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _isolated(request: pytest.FixtureRequest) -> Iterator[None]:
    """A measuring lock of our own, no settings from outside, and not the strictness of CI.

    But scenario tests measure this machine: they are held to its lock, and to what is set outside.
    """
    if all(item.path.is_relative_to(SCENARIOS) for item in request.session.items):
        yield
        return
    saved = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("LDOS_")]:
        del os.environ[name]
    os.environ.pop("CI", None)
    # What many processes import is compiled once, not in each of them.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["LDOS_LOCK"] = f"ldos-test-{secrets.token_hex(8)}"
    os.environ[OURS] = secrets.token_hex(8)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: None)  # no file of a test has to survive a crash of the machine
        yield
    os.environ.clear()
    os.environ.update(saved)


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Unpacks a recorded trace; each once a session."""
    unpacked: dict[str, Path] = {}

    def unpack(name: str) -> Path:
        if name not in unpacked:
            target = tmp_path_factory.mktemp("golden")
            with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
                # Python 3.11.2, Debian 12's, has no filters yet.
                archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
                archive.extractall(target)
            unpacked[name] = target / name
        return unpacked[name]

    return unpack
