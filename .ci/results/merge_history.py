"""Adds what machines of the lab have measured to the history, and keeps it small.

Usage: .venv/bin/python .ci/results/merge_history.py RECEIVED HISTORY --commit SHA

RECEIVED/trials-LABEL/RUN/SCENARIO/trials.json (and base/trials.json) is what each machine has measured. HISTORY/rows is
the history as it was; it is written again, one file a series, with the newest runs of each and what it is pinned to.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import polars as pl
import records
from artifacts import read_artifacts
from github_api import Failed, parse_commit
from history import BRANCH, LARGEST, ROWS
from provenance import require_commit, require_past

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.parquet import FAULTS, read_whole
from pytest_ldos.base.text import one_line
from pytest_ldos.cli.history import import_runs
from pytest_ldos.judge.baseline.history import SCHEMA, HistoryStore, write_file
from pytest_ldos.judge.baseline.trend import FILE as PIN_FILE
from pytest_ldos.judge.baseline.trend import read_pin
from pytest_ldos.measure.trial.artifacts import decode_trials

MOST_RUNS: Final = 400
"""Runs that are kept of each series."""

_REMEDY: Final = f"put the branch {BRANCH} back to what it was, or delete it to begin again"


def main() -> int:
    """Entry point; 1 where something is not what it should be, and then there is no new history."""
    parser = argparse.ArgumentParser(prog="merge_history", description="Adds measurements to the history.")
    parser.add_argument("received", type=Path)
    parser.add_argument("history", type=Path)
    parser.add_argument("--commit", required=True, type=parse_commit)
    arguments = parser.parse_args()
    try:
        runs = check_received(arguments.received, commit=arguments.commit, now=datetime.now(UTC))
        rows = arguments.history / ROWS
        require_history(rows)
        import_runs(runs, rows)
        compact(rows, most_runs=MOST_RUNS, largest=LARGEST)
    except (Failed, LdosError) as error:
        sys.stderr.write(f"merge_history: {one_line(str(error))}\n")
        return 1
    return 0


def check_received(received: Path, *, commit: str, now: datetime) -> list[str]:
    """The folders of runs, all of whose trials can be read and are of this commit or of its base.

    Raises:
        Failed: something else is there.
    """
    files = read_artifacts(received, "trials", records.FORM, most=records.MOST, largest=records.LARGEST)
    for path, content in files.items():
        trials = decode_trials(content.decode("utf-8", errors="replace"), received / path)
        require_past(trials, path, now)
        require_commit(trials, path, "" if path.endswith(f"/{records.BASE}") else commit)
    return sorted({str(received.joinpath(*Path(path).parts[:2])) for path in files})


def require_history(directory: Path) -> None:
    """Requires that every file of the branch is one of ours: whoever can push can write there.

    Raises:
        Failed: it is not.
    """
    for file in sorted(directory.rglob("*.parquet")):
        try:
            columns = dict(pl.read_parquet_schema(read_whole(file)))
        except (ValueError, *FAULTS) as error:
            raise Failed(f"{file} is damaged ({type(error).__name__}); {_REMEDY}") from None
        if columns != SCHEMA:
            raise Failed(f"{file} has not the columns of a history; {_REMEDY}")


def compact(directory: Path, *, most_runs: int, largest: int) -> None:
    """Writes each series again, into one file; of fewer and fewer runs until all of them have room.

    Raises:
        Failed: files of it are damaged.
    """
    for folder in sorted({file.parent for file in directory.rglob("*.parquet")}):
        rows = HistoryStore(folder).read()
        if rows.damaged:
            raise Failed(f"{'; '.join(map(str, rows.damaged))}; {_REMEDY}")
        _write_alone(folder, _newest(rows.table, folder, most_runs))
    if most_runs > 1 and sum(file.stat().st_size for file in directory.rglob("*.parquet")) > largest:
        compact(directory, most_runs=most_runs // 2, largest=largest)


def _newest(table: pl.DataFrame, folder: Path, most_runs: int) -> pl.DataFrame:
    """The rows of the last runs, and of what the series is pinned to."""
    runs = table.group_by("trials").agg(pl.col("started_at", "commit").first()).sort("started_at", "trials")
    kept = {*runs.tail(most_runs)["trials"]}
    pin = read_pin(folder)
    if pin is not None:
        by, name = ("trials", pin.trials) if pin.trials else ("commit", pin.commit)
        kept |= {*runs.filter(pl.col(by) == name)["trials"]}
    return table.filter(pl.col("trials").is_in(sorted(kept))).sort("started_at", "trials", "metric", "trial")


def _write_alone(folder: Path, table: pl.DataFrame) -> None:
    """One file in the place of all others; what is no part of the history goes."""
    new = folder.with_name(f"{folder.name}.new")
    write_file(new / "merged-runs.parquet", table)
    if (folder / PIN_FILE).is_file():
        shutil.copyfile(folder / PIN_FILE, new / PIN_FILE)
    shutil.rmtree(folder)
    new.rename(folder)


if __name__ == "__main__":
    sys.exit(main())
