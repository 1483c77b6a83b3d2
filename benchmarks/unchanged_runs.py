"""Measures unchanged code again and again, and appends the trials to the record from which the gate knows machines.

    make runs                                    # six plain runs and two interleaved, idle and under a foreign load
    make runs ARGS="--plain 3 --interleaved 0 --busy 0"

One line a trial. Of the machine it keeps what its class is made of, and a digest of its boot: two boots are two machines.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pytest_ldos.judge.unchanged import COLUMNS, MEASURED, RECORD
from pytest_ldos.measure.metrics.model import COVARIATES
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.record import Trial, TrialSet

_GIT: Final = ("git", "-c", "user.name=pytest-ldos", "-c", "user.email=runs@example.org")
_IDLE, _BUSY = "idle", "busy"
_LIMIT_S: Final = 1200


def measure(project: Path, stack: str, condition: str, *, interleaved: bool) -> Iterator[list[object]]:
    """Measures one run of a project that does not change; its trials, with the base's if both were interleaved."""
    with tempfile.TemporaryDirectory(dir=project, prefix="out-") as output:
        options = [f"--ldos-base={sys.prefix}", "--ldos-max-trials=30"] if interleaved else []
        command = [sys.executable, "-m", "pytest", "-q", "-m", "baseline", f"--ldos-stack={stack}", *options]
        command += [f"--ldos-output={Path(output).name}", "--ldos-traces=none"]
        subprocess.run(command, cwd=project, check=False, timeout=_LIMIT_S, stdout=sys.stderr)
        for file in sorted(Path(output).glob("runs/*/*/trials.json")):
            yield from _trials(read_trials(file), "head" if interleaved else "", condition)
            if interleaved:
                yield from _trials(read_trials(file.parent / "base" / "trials.json"), "base", condition)


def _trials(trials: TrialSet, version: str, condition: str) -> Iterator[list[object]]:
    host, boot = trials.fingerprint.host_class, Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    machine = f"{host} {hashlib.sha256(boot.encode()).hexdigest()[:8]}"
    for trial in trials.trials:
        covariates = (_digits(trial.covariates_ms.get(name)) for name in COVARIATES)
        first = (machine, condition, trials.stack_kind, trials.scenario, trials.started_at, version)
        asked = (trial.index, trial.block, trial.question, trial.outcome.value)
        yield [*first, *asked, *covariates, *(_measured(trial, name) for name in MEASURED)]


def _measured(trial: Trial, name: str) -> str:
    found = trial.measurements.get(name)
    return _digits(None if found is None else found.number)


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


@contextmanager
def _first_project() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ldos-runs-") as name:
        folder = Path(name)
        programs = Path(sys.executable).parent
        subprocess.run([programs / "ldos", "init"], cwd=folder, check=True, stdout=sys.stderr)
        for arguments in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message", "First project")):
            subprocess.run([*_GIT, *arguments], cwd=folder, check=True)
        yield folder


@contextmanager
def _foreign(condition: str) -> Iterator[None]:
    """Another program that wants one CPU, if the machine is to be busy."""
    if condition == _IDLE:
        yield
        return
    with subprocess.Popen(["stress-ng", "--cpu", "1", "--timeout", "2h", "--quiet"]) as other:
        try:
            yield
        finally:
            other.terminate()


def append(trials: Iterator[list[object]]) -> int:
    """Appends the trials of a run to the record; their number."""
    found = list(trials)
    new = not RECORD.exists()
    with RECORD.open("a", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        writer.writerows(found)
    return len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", type=int, default=6, help="plain runs in each condition")
    parser.add_argument("--interleaved", type=int, default=2, help="interleaved runs in each condition")
    parser.add_argument("--busy", type=int, default=1, help="0: only while nothing else is to run")
    parser.add_argument("--stack", default="embedded")
    asked = parser.parse_args()
    os.environ["LDOS_STRICT"] = "false"
    with _first_project() as project:
        for condition in (_IDLE, _BUSY)[: 1 + bool(asked.busy)]:
            with _foreign(condition):
                for number in range(asked.plain + asked.interleaved):
                    made = append(measure(project, asked.stack, condition, interleaved=number >= asked.plain))
                    print(f"{condition} run {number + 1}: {made} trials", flush=True)


if __name__ == "__main__":
    main()
