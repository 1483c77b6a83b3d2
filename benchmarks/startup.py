"""Overhead of the installed plugin in an unrelated test run.

    make bench
    python -m benchmarks.startup --pairs 60

A project with one empty test is run with the plugin and without it (``-p no:ldos``), interleaved. Shown are the medians of
CPU time and wall time, and of their differences in pairs with an interval of 95 %.

What pytest does for an installed distribution whether or not its plugin is loaded is in both: it lists the files of
each that has one, and from Python 3.12 on `importlib.metadata` looks each of them up on the disk. ``--peer PYTHON`` runs the
peer in an environment without any of it; where the plugin is installed from a wheel, that is what it really costs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.timing import Cost, cost_of_children

TARGET_MS = 20.0
_TEST = "def test_plain():\n    pass\n"
_DRAWS = 4000

_OTHERS = ("cacheprovider", "hypothesispytest", "benchmark", "xdist", "rerunfailures")
"""Plugins that are left out on both sides: what they cost only adds noise."""


def measure(commands: Sequence[Sequence[str]], pairs: int) -> list[list[Cost]]:
    """Costs of each command, run interleaved in a folder with one empty test; the first run of each does not count."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    costs: list[list[Cost]] = [[] for _ in commands]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_plain.py").write_text(_TEST, "utf-8")
        for pair in range(pairs + 1):
            order = range(len(commands)) if pair % 2 else reversed(range(len(commands)))
            for number in order:
                cost = cost_of_children(lambda: _run(commands[number], folder, environment))  # noqa: B023 - called at once
                if pair:
                    costs[number].append(cost)
    return costs


def _run(command: Sequence[str], folder: str, environment: dict[str, str]) -> None:
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)


def interval_of_median(values: np.ndarray) -> tuple[float, float]:
    """The 95 % interval, by bootstrap resamples."""
    drawn = np.random.default_rng(1).choice(values, (_DRAWS, len(values)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return float(low), float(high)


def show(with_it: list[Cost], without: list[Cost]) -> bool:
    """Prints both clocks; whether the interval of CPU time lies below the target."""
    table = Table("clock", "with, ms", "without, ms", "difference, ms", "95 %", title="start-up of an unrelated run")
    highest = {}
    for clock in ("cpu_s", "wall_s"):
        ours, theirs = (np.array([getattr(cost, clock) * 1e3 for cost in costs]) for costs in (with_it, without))
        low, highest[clock] = interval_of_median(ours - theirs)
        medians = [f"{np.median(each):.1f}" for each in (ours, theirs, ours - theirs)]
        table.add_row(clock.removesuffix("_s"), *medians, f"{low:.1f} … {highest[clock]:.1f}")
    Console(width=100).print(table)
    return bool(highest["cpu_s"] < TARGET_MS)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="What the installed plugin adds to an unrelated test run.")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--peer", default="", help="an interpreter whose environment has pytest and not this plugin")
    options = parser.parse_args(arguments)
    others = [word for name in _OTHERS for word in ("-p", f"no:{name}")]
    run = ["-m", "pytest", "-q", *others]
    ours = [sys.executable, *run, "test_plain.py"]
    peer = (
        [options.peer, *run, "test_plain.py"]
        if options.peer
        else [sys.executable, *run, "-p", "no:ldos", "test_plain.py"]
    )
    met = show(*measure([ours, peer], options.pairs))
    sys.stdout.write(f"target: below {TARGET_MS:g} ms of CPU time: {'met' if met else 'missed'}\n")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
