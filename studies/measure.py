"""Runs the commands of a study, and keeps what its page needs of their results."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

from pytest_ldos.base.stats.counts import mean_interval
from studies.model import ROOT, Run, Study

_MEASURED: Final = (0, 10, 11)
"""Exit codes of runs in which scenarios were measured, whether or not their expectations were met."""

_MOST_ROWS: Final = 40
"""Rows of a table that is kept; longer ones, such as every round, are not, and of system calls the first."""


def measure(study: Study, names: Sequence[str]) -> int:
    """Measures the named runs of a study, by default all; returns the first exit code that is not 0."""
    worst = 0
    for run in study.runs:
        if names and run.name not in names:
            continue
        print(f"{study.name}: {run.name}: {' '.join(run.command)}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            code = _run(study, run, Path(folder))
        print(f"{study.name}: {run.name}: exit code {code}", flush=True)
        worst = worst or code
    return worst


def _run(study: Study, run: Run, folder: Path) -> int:
    output, (program, *arguments) = folder / "results.json", run.command
    own = (
        [f"--ldos-report={output}", f"--ldos-output={folder / 'ldos'}"]
        if program == "pytest"
        else ["--output", str(output)]
    )
    command = [str(Path(sys.executable).with_name(program)), *arguments, *own]
    code = subprocess.run(command, cwd=ROOT / study.name, check=False).returncode
    if output.is_file() and code in _MEASURED:
        data = json.loads(output.read_text("utf-8"))
        file = study.file(run.name)
        file.parent.mkdir(exist_ok=True)
        kept = {"machine": describe_machine(), **(of_scenarios(data) if program == "pytest" else _of_instrument(data))}
        file.write_text(encode(kept), "utf-8")
    return code


def _of_instrument(data: dict[str, Any]) -> dict[str, Any]:
    tables = {name: table["rows"] for name, table in data["tables"].items() if len(table["rows"]) <= _MOST_ROWS}
    if calls := data["tables"].get("system_calls"):
        tables["system_calls"] = calls["rows"][:_MOST_ROWS]
    return {
        "started_at": data["started_at"],
        "versions": {**data["versions"], "middleware": data["middleware"]},
        "notes": data["notes"],
        "tables": {name: [_rounded(row) for row in rows] for name, rows in tables.items() if name != "histograms"},
    }


def of_scenarios(data: dict[str, Any]) -> dict[str, Any]:
    """A row for each scenario: trials, successes, and of each metric mean, standard deviation and 95 % interval.

    An invalid scenario, whose load was not as requested for example, is a note.
    """
    valid = [section for section in data["sections"] if section["verdict"] != "invalid"]
    invalid = [f"{each['scenario']}: {each['reasons'][0]}" for each in data["sections"] if each not in valid]
    measured = [section for section in valid if section["head"]]
    rows = []
    for section in measured:
        head = section["head"]
        row = {"scenario": section["scenario"], "trials": head["trials"], "successes": head["successes"]}
        row["success_rate"] = 100 * head["successes"] / head["trials"] if head["trials"] else None
        for metric in section["metrics"]:
            values = [each["value"] for each in (metric["head"] or {}).get("points", ()) if each["value"] is not None]
            if len(values) > 1:
                name, (low, high) = metric["name"], mean_interval(values)
                row |= {name: fmean(values), f"{name}_sd": stdev(values), f"{name}_low": low, f"{name}_high": high}
        rows.append(_rounded(row))
    failures = [
        f"{section['scenario']}: {len(each['trials'])} trials {each['outcome']}, code {each['code']}: {each['message']}"
        for section in measured
        for each in section["head"]["failures"]
    ]
    stacks = dict.fromkeys(section["head"]["stack"].replace(f"{ROOT}/", "") for section in measured)
    return {
        "started_at": data["made_at"],
        "versions": {"stack": ", ".join(stacks)},
        "notes": [*failures, *invalid],
        "tables": {"scenarios": rows},
    }


def encode(results: dict[str, Any]) -> str:
    """JSON with a line for each fact and each row."""
    facts = [
        f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in results.items()
        if name != "tables"
    ]
    tables = [
        f"  {json.dumps(name)}: [\n" + ",\n".join(f"   {json.dumps(row, ensure_ascii=False)}" for row in rows) + "\n  ]"
        for name, rows in results["tables"].items()
    ]
    return "{\n" + ",\n".join([*facts, ' "tables": {\n' + ",\n".join(tables) + "\n }"]) + "\n}\n"


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: float(f"{cell:.5g}") if isinstance(cell, float) else cell for name, cell in row.items()}


def describe_machine() -> str:
    """``2 CPUs of Intel Xeon, 24 GB, Linux 6.1``; no name of the machine."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    kernel = ".".join(platform.release().split(".")[:2])
    return f"{os.cpu_count()} CPUs of {next(names, platform.machine())}, {memory:.0f} GB, Linux {kernel}"
