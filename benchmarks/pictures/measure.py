"""Real results for the pictures of README and docs, measured on the embedded stack.

    python -m benchmarks.pictures.measure FOLDER [STEP…]

Each step is a project that ``ldos init`` made, in a git repository of its own below FOLDER; a step whose folder is there
is not measured again. Steps take one to four minutes each, on a machine that does nothing else.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

PLANTED: Final = "\n[tool.ldos.stack.faults]\nplanning_delay_ms = 25\n"
"""The regression of all pictures: the planner takes 25 ms more."""

SLOW_LOOP: Final = "\n[tool.ldos.stack.faults]\ncontrol_rate_hz = 100\n"

_AUTHOR: Final = ("-c", "user.name=pytest-ldos", "-c", "user.email=pictures@example.org")
_BIN: Final = Path(sys.executable).parent
_REGRESSED: Final = 10
_TRACE: Final = Path(__file__).parents[2] / "tests/golden/panda_baseline_1.tar.xz"


class Project:
    """A first project in a repository of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.run("ldos", "init")
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("First project")

    def run(self, program: str, *arguments: str, status: int | None = 0, output: str = "") -> None:
        """Runs a command as a terminal would show it.

        Args:
            status: expected exit status; ``None`` for any.
            output: file that keeps what was printed, with its colours.
        """
        environment = {**os.environ, "PATH": f"{_BIN}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "110"}
        command = [
            "script",
            "--quiet",
            "--return",
            "--command",
            _line(program, arguments),
            str(self.folder / (output or ".said")),
        ]
        done = subprocess.run(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, check=False)
        if status not in {None, done.returncode}:
            raise SystemExit(f"{_line(program, arguments)} ended with {done.returncode}")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *_AUTHOR, *arguments], cwd=self.folder, check=True)

    def commit(self, subject: str, *, settings: str = "") -> None:
        """Commits everything, with `settings` appended to the project's."""
        with (self.folder / "pyproject.toml").open("a", encoding="utf-8") as file:
            file.write(settings)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)


def _line(program: str, arguments: tuple[str, ...]) -> str:
    return " ".join([program, *arguments])


def measure_regression(project: Project) -> None:
    """Measures ten reaches, then ten with the planted delay, compared with the first."""
    project.run("pytest", "-m", "baseline", output="baseline.said")
    project.commit("Try another planner", settings=PLANTED)
    reports = ("--ldos-confirm=0", "--ldos-report", "report.html", "--ldos-report", "report.md")
    project.run("pytest", "-m", "baseline", *reports, status=_REGRESSED, output="regressed.said")


def measure_history(project: Project) -> None:
    """Measures seven commits; the fifth brings the delay."""
    subjects = ("Rename a joint", "Move the camera", "Update the README", "Tidy the launch file", "Try another planner")
    for index, subject in enumerate((*subjects, "Add a gripper", "Move the table")):
        project.commit(subject, settings=PLANTED if index == len(subjects) - 1 else "")
        options = ("--ldos-trials", "5", "--ldos-history", "history", "--ldos-traces", "none")
        project.run("pytest", "-m", "baseline", *options, status=None)
    project.run("ldos", "history", "--dir", "history", "--site", "site")


def measure_sweep(project: Project) -> None:
    """Measures floods of three rates on one CPU and on two."""
    over = ("--over", "dds_flood.rate=1000,2000,4000", "--over", "cpu_limit.cpus=1,2")
    project.run("ldos", "sweep", *over, "--trials", "3", "--output", "sweep.html")


def measure_breaking(project: Project) -> None:
    """Looks for the share of the CPUs below which the arm breaks."""
    how = ("--lo", "10", "--hi", "100", "--confidence", "0.8", "--precision", "50%", "--time-limit", "200s")
    project.run("ldos", "find-breaking", "cpu_limit.quota", *how, "--output", "breaking.html", status=None)


def measure_profile(project: Project) -> None:
    """Samples six reaches with a control loop of 500 Hz, and six with one of 100 Hz, which takes less CPU time."""
    options = ("--ldos-trials", "6", "--ldos-profile", "--ldos-profiler", "py-spy", "--ldos-traces", "none")
    for name in ("base", "head"):
        project.run("pytest", "-m", "baseline", *options, f"--ldos-output=.ldos/{name}", status=None)
        project.commit("Slow the control loop down", settings=SLOW_LOOP if name == "base" else "")
    folders = (f".ldos/{name}/runs/*/baseline/profile" for name in ("base", "head"))
    project.run("ldos", "profile", "diff", *folders, "--output", "difference.svg")


def look_at_trace(project: Project) -> None:
    """Makes the page of the recorded trace that the tutorial reads."""
    with tarfile.open(_TRACE) as archive:
        archive.extractall(project.folder, filter="data")
    project.run("ldos", "analyze", _TRACE.name.partition(".")[0], "--output", "trace.html")


STEPS: Final[dict[str, Callable[[Project], None]]] = {
    "regression": measure_regression,
    "history": measure_history,
    "sweep": measure_sweep,
    "breaking": measure_breaking,
    "profile": measure_profile,
    "trace": look_at_trace,
}

if __name__ == "__main__":
    place = Path(sys.argv[1])
    for step in sys.argv[2:] or STEPS:
        if not (place / step).exists():
            STEPS[step](Project(place / step))
