"""Makes the recorded data set from run records: keeps the numbers, drops everything else.

    python -m benchmarks.scorecard.data.collect OUTPUT NAME=DIRECTORY…

NAME is the pool that the trials of all records below DIRECTORY go to, followed by the scenario's: `calm-baseline`.
Starts that measured fewer than `FEWEST` trials, and starts with planted faults, are left out and named.
"""

from __future__ import annotations

import csv
import lzma
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_ldos.measure.metrics.model import CPU_WORK, PLANNED_DURATION
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.record import Trial, TrialSet

FEWEST = 6
MEASURED = ("T1", "T2", "T2x", "T3", "T4", "T5")
DETAILS = {"T3p99": ("T3", "p99_ms")}
"""Metrics that older records hold as a detail of another."""

COLUMNS = (
    "pool",
    "start",
    "minute",
    "order",
    "outcome",
    "plan_ms",
    "cpu_work_ms",
    *MEASURED,
    *DETAILS,
)


def why_left_out(trials: TrialSet) -> str:
    if any(vars(trials.spec.stack.faults).values()):
        return "has planted faults"
    if len(trials.trials) < FEWEST or not any(trial.measurements for trial in trials.trials):
        return f"has {len(trials.trials)} trials ({trials.incomplete or 'no measurements'})"
    return ""


def rows_of(pool: str, start: int, minute: float, trials: TrialSet) -> Iterator[list[object]]:
    for trial in trials.trials:
        first = (f"{pool}-{trials.scenario}", start, round(minute, 1), trial.index, trial.outcome.value)
        covariates = (_digits(trial.covariates_ms.get(name)) for name in (PLANNED_DURATION, CPU_WORK))
        yield [*first, *covariates, *_values(trial)]


def _values(trial: Trial) -> Iterable[object]:
    for metric in MEASURED:
        yield _digits(None if (found := trial.measurements.get(metric)) is None else found.number)
    for whole, detail in DETAILS.values():
        measurement = trial.measurements.get(whole)
        yield _digits(None if measurement is None else measurement.details.get(detail))


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"


def collect(pool: str, folder: Path) -> Iterator[list[object]]:
    """Rows of all records below a folder, in the order of time."""
    from datetime import datetime

    records = sorted((read_trials(file) for file in folder.rglob("trials.json")), key=lambda each: each.started_at)
    starts: dict[str, int] = {}
    for trials in records:
        if reason := why_left_out(trials):
            print(f"left out: {pool}-{trials.scenario} of {trials.started_at} {reason}")
            continue
        start = starts[trials.scenario] = starts.get(trials.scenario, -1) + 1
        began = datetime.fromisoformat(records[0].started_at)
        minute = (datetime.fromisoformat(trials.started_at) - began).total_seconds() / 60
        yield from rows_of(pool, start, minute, trials)


def main() -> None:
    output, *pools = sys.argv[1:]
    with lzma.open(output, "wt", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(COLUMNS)
        for pool in pools:
            name, _, folder = pool.partition("=")
            writer.writerows(collect(name, Path(folder)))


if __name__ == "__main__":
    main()
