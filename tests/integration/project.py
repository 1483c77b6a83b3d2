"""A folder with scenario tests of its own, run in processes of their own."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.record import TrialSet
from tests.builders.ours import is_of_others

ROOT = Path(__file__).parents[2]

OURS = {
    "simulator",
    "move_group",
    "robot_state_pub",
    "goal_client",
    "problem_planner",
    "flood_publisher",
    "flood_counter",
    "cpu_thief",
    "stress-ng",
    "lttng-sessiond",
}

SCENARIO = """
import pytest

@pytest.mark.baseline
def test_reach(panda_stack, ldos_trials, ldos_gate):
    ldos_gate.check(ldos_trials(panda_stack))
"""


FAST = """
[tool.ldos.stack]
velocity_scaling = 1.0
acceleration_scaling = 1.0
"""
"""Motions of half the usual time."""


@dataclass
class Project:
    """A folder with scenario tests, run in processes of their own."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)
    python: str | Path = sys.executable

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, "utf-8")

    def command(self, *arguments: str) -> list[str]:
        return [str(self.python), "-m", "pytest", "-p", "no:cacheprovider", *arguments]

    def start(self, *arguments: str) -> subprocess.Popen:
        command = self.command(*arguments)
        return subprocess.Popen(
            command, cwd=self.path, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, *arguments: str, timeout_s: float = 300) -> tuple[int, str]:
        process = self.start(*arguments)
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            started = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            process.communicate()
            psutil.wait_procs(started, timeout=60)
            raise
        return process.returncode, output

    def saved(self, scenario: str = "baseline", output: str = ".ldos") -> TrialSet:
        (file,) = self.path.glob(f"{output}/runs/*/{scenario}/trials.json")
        return read_trials(file)


def make_project(path: Path) -> Project:
    environment = {**os.environ, "LDOS_LOCK": f"ldos-test-{secrets.token_hex(8)}", "COLUMNS": "120"}
    project = Project(path, environment)
    project.write("pyproject.toml", f"[tool.pytest.ini_options]\naddopts = '--strict-markers'\n{FAST}")
    project.write("test_scenario.py", SCENARIO)
    return project


def make_other_version(folder: Path, file: str, changes: Mapping[str, str]) -> Path:
    """Makes an environment with a copy of our package, with changed text in a file of the embedded stack.

    Returns its Python.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    ours = Path(sysconfig.get_path("purelib"))
    sources = folder / "sources/pytest_ldos"
    compiled = {each.relative_to(ours / "pytest_ldos"): each for each in (ours / "pytest_ldos").rglob("*.so")}
    shutil.copytree(ROOT / "pytest_ldos", sources, ignore=shutil.ignore_patterns("native"))
    for place, each in compiled.items():
        shutil.copyfile(each, sources / place)
    changed = sources / "robot/stack/embedded" / file
    for text, other in changes.items():
        before = changed.read_text("utf-8")
        assert text in before
        changed.write_text(before.replace(text, other), "utf-8")
    (library,) = folder.glob("lib/python*/site-packages")
    (library / "other.pth").write_text(f"{sources.parent}\n{ours}\n")
    return folder / "bin/python"


def shared_memory() -> set[str]:
    """Names of what lies in shared memory now, but semaphores of Python's multiprocessing, which no stack uses."""
    return {file.name for file in Path("/dev/shm").iterdir() if not file.name.startswith("sem.mp-")}


def left_in_memory(before: set[str]) -> set[str]:
    """Names of what came into shared memory since, but what a running process has mapped: that is another program's."""
    return {name for name in shared_memory() - before if not _is_mapped(name)}


def _is_mapped(name: str) -> bool:
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            if f"/dev/shm/{name}" in maps.read_text():
                return True
    return False


def running() -> set[int]:
    """Pids of everything a run of ours may start, but zombies and what others run here."""
    return {
        process.pid
        for process in psutil.process_iter(["name", "status"])
        if process.info["name"] in OURS
        and process.info["status"] != psutil.STATUS_ZOMBIE
        and not is_of_others(process.pid)
    }
