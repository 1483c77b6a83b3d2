"""Sums the CPU time of rungs by whose it is, by samples of ``ldos cpu-cost --profile``: ``shares.py MIDDLEWARE RUNG…``.

The classes are the published ones: the executor with all that it calls, eProsima's own threads, and the rest. In
addition, each sample belongs to the layer whose code it is in.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pytest_ldos.record.profiles import Stack, merge, read_folded

SECONDS: Final = 30
RATE_HZ: Final = 499
PROGRAM: Final = "cost_ladder"
"""Its samples count; those of the program that starts it do not."""

EXECUTOR: Final = re.compile(r"rclcpp::(executors::|Executor\b)")
OWN: Final = {
    "rclcpp": re.compile(r"rclcpp::"),
    "rcl and rmw": re.compile(r"^(rcl|rmw|rcutils)_|rmw_\w+::"),
    "eProsima": re.compile(r"eprosima::|fastcdr"),
}
"""Code of a layer, by the name of a function; the innermost of a stack counts."""


def published_class(stack: tuple[str, ...]) -> str:
    if any(EXECUTOR.search(frame) for frame in stack):
        return "executor"
    return "eProsima" if any("eprosima" in frame for frame in stack) else "other"


def own_class(stack: tuple[str, ...]) -> str:
    classes = (name for frame in reversed(stack) for name, pattern in OWN.items() if pattern.search(frame))
    return next(classes, "other")


def shares(stacks: Mapping[Stack, int]) -> dict[str, float]:
    """Per cent of the samples by class; those by whose code they are in have the prefix ``in``."""
    counts: Counter[str] = Counter()
    for stack, samples in stacks.items():
        counts[published_class(stack)] += samples
        counts[f"in {own_class(stack)}"] += samples
    total = sum(stacks.values())
    names = ("executor", "eProsima", "other", *(f"in {name}" for name in (*OWN, "other")))
    return {"samples": total, **{name: 100 * counts[name] / total for name in names}}


def profile(rmw: str, rung: str, folder: Path) -> dict[str, Any]:
    """The results of a run, with the shares of its samples as their only table."""
    program = str(Path(sys.executable).with_name("ldos"))
    traffic = [
        "--layer",
        "ros2",
        "--rmw",
        rmw,
        "--rungs",
        rung,
        "--starts",
        "1",
        "--rounds",
        "1",
        "--seconds",
        str(SECONDS),
    ]
    output = folder / "cost.json"
    command = [
        program,
        "cpu-cost",
        *traffic,
        "--profile",
        str(folder),
        "--profile-rate",
        str(RATE_HZ),
        "--output",
        str(output),
    ]
    subprocess.run(command, check=True)
    stacks = merge(map(read_folded, folder.glob("*.folded"))).counts
    own = {stack: samples for stack, samples in stacks.items() if stack[0] == PROGRAM}
    results: dict[str, Any] = json.loads(output.read_text("utf-8"))
    results["tables"] = {"shares": {"rows": [{"rung": rung, **shares(own)}]}}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rmw")
    parser.add_argument("rungs", nargs="+")
    parser.add_argument("--output", type=Path, required=True)
    chosen = parser.parse_args()
    found = []
    for rung in chosen.rungs:
        with tempfile.TemporaryDirectory() as folder:
            found.append(profile(chosen.rmw, rung, Path(folder)))
    results = found[0]
    results["tables"]["shares"]["rows"] = [row for each in found for row in each["tables"]["shares"]["rows"]]
    chosen.output.write_text(json.dumps(results), "utf-8")


if __name__ == "__main__":
    main()
