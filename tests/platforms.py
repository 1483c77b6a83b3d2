"""Records which tests ran on which platform: ``pytest -p tests.platforms --platforms docs/platforms.json tests/…``.

A row is a distribution, a middleware and a stack, with the numbers of its last run; rows of other platforms stay. The
page ``docs/reference/platforms.md`` is made of it (``make reference``).
"""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_ldos.host.checkout import describe_commit

ROOT = Path(__file__).parents[1]
MARK = "stack"
STACKS = {
    "tests/integration/rcl": "nodes of rclpy, from wheels",
    "tests/integration/ros2/stack": "the Panda on MoveIt 2 and ros2_control",
    "tests/integration/ros2": "nodes",
    "tests/integration/embedded": "the embedded arm",
}
"""Stack by folder, the deepest first; other folders are not recorded. A mark ``stack`` names another."""
SIMULATIONS = {"mock": "mock hardware", "gz": "Gazebo"}
FROM_WHEELS = {
    "tests/integration/rcl": ("ROS 2 Jazzy, from wheels", "rmw_fastrtps_cpp"),
    "tests/integration/embedded": ("no ROS 2", "Cyclone DDS, from wheels"),
}

Key = tuple[str, str, str]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--platforms", metavar="FILE", help="append the platform and the numbers of this run")


def pytest_configure(config: pytest.Config) -> None:
    if (file := config.getoption("--platforms")) is not None:
        if config.getoption("numprocesses", None):
            raise pytest.UsageError("--platforms counts in one process: leave -n out")
        config.pluginmanager.register(PlatformRecord(Path(file)))


class PlatformRecord:
    """Counts outcomes by platform, and writes them when the run ends."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._keys: dict[str, Key] = {}
        self._counts: dict[Key, Counter[str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._keys = {item.nodeid: key for item in items if (key := key_of(item)) is not None}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        key = self._keys.get(report.nodeid)
        if key is not None and (report.when == "call" or report.outcome != "passed"):
            self._counts.setdefault(key, Counter())[report.outcome] += 1

    def pytest_sessionfinish(self) -> None:
        rows = json.loads(self._file.read_text("utf-8")) if self._file.is_file() else []
        fresh = {key: counts for key, counts in self._counts.items() if counts["passed"] or counts["failed"]}
        kept = [row for row in rows if (row["distribution"], row["middleware"], row["stack"]) not in fresh]
        shared = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": describe_commit(ROOT)}
        for (distribution, middleware, stack), counts in fresh.items():
            outcomes = {outcome: counts[outcome] for outcome in ("passed", "failed", "skipped")}
            kept.append({"distribution": distribution, "middleware": middleware, "stack": stack, **outcomes, **shared})
        kept.sort(key=lambda row: (row["distribution"], row["stack"], row["middleware"]))
        self._file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")


def key_of(item: pytest.Item) -> Key | None:
    """Distribution, middleware and stack of a test; ``None`` where it says nothing about a platform."""
    path = item.path.relative_to(ROOT).as_posix()
    folder = next((each for each in STACKS if path.startswith(f"{each}/")), None)
    if folder is None:
        return None
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    ros, middleware = FROM_WHEELS.get(folder, (_sourced(), os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")))
    marked = item.get_closest_marker(MARK)
    stack = str(marked.args[0]) if marked else STACKS[folder]
    if folder.endswith("/stack") and not marked:
        sim = "gz" if "gazebo" in path else os.environ.get("LDOS_SIM", "mock")
        stack += f", {SIMULATIONS[str(parameters.get('sim', sim))]}"
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return f"{ros}; {system}, {platform.machine()}", str(parameters.get("rmw", middleware)), stack


def _sourced() -> str:
    distro = os.environ.get("ROS_DISTRO")
    return f"ROS 2 {distro.capitalize()}" if distro else "no ROS 2"
