"""Many traces as one Parquet data set, for any tool that reads tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import polars as pl

from pytest_ldos.base.parquet import write_table
from pytest_ldos.fleet.summary import TraceSummary
from pytest_ldos.show.export.replaced import beside, replaced

TRACES: Final = "traces.parquet"
MEASUREMENTS: Final = "measurements.parquet"

_TRACES: Final[dict[str, Any]] = {
    "trace": pl.String,
    "problem": pl.String,
    "events": pl.Int64,
    "nodes": pl.Int64,
    "reached": pl.Int64,
    "failed": pl.Int64,
    "unknown": pl.Int64,
    "lost_events": pl.Int64,
    "lost_packets": pl.Int64,
    "damage": pl.String,
}
_MEASUREMENTS: Final[dict[str, Any]] = {
    "trace": pl.String,
    "goal": pl.String,
    "goal_id": pl.String,
    "began_ns": pl.Int64,
    "outcome": pl.String,
    "metric": pl.String,
    "unit": pl.String,
    "status": pl.String,
    "value": pl.Float64,
    "reason": pl.String,
    "source": pl.String,
}


def traces_frame(summaries: Sequence[TraceSummary]) -> pl.DataFrame:
    """One row per trace; for one that could not be read, `problem` states the reason, and the counts are null."""
    rows = [{name: getattr(each, name) for name in _TRACES} for each in summaries]
    unknown = pl.when(pl.col("problem") == "").then(pl.col(*list(_TRACES)[2:]))
    return pl.DataFrame(rows, schema=_TRACES).with_columns(unknown)


def measurements_frame(summaries: Sequence[TraceSummary]) -> pl.DataFrame:
    """One row per goal and metric, with their trace; where `value` is null, `reason` states why."""
    rows = [{"trace": summary.trace, **asdict(each)} for summary in summaries for each in summary.values]
    return pl.DataFrame(rows, schema=_MEASUREMENTS)


def is_fleet_directory(directory: Path) -> bool:
    """True if all files in the directory were written by `write_fleet`, so that it can be replaced."""
    return directory.is_dir() and {path.name for path in directory.iterdir()} == {TRACES, MEASUREMENTS}


def require_writable(directory: Path) -> None:
    """Checks that `write_fleet` can write there.

    Raises:
        OSError: it cannot.
    """
    with beside(directory):
        pass


def write_fleet(summaries: Sequence[TraceSummary], directory: Path) -> None:
    """Writes ``traces.parquet`` and ``measurements.parquet``; both appear at once, or not at all.

    Raises:
        OSError: the directory cannot be written, or holds something else.
    """
    with replaced(directory, is_ours=is_fleet_directory) as fresh:
        fresh.mkdir()
        write_table(traces_frame(summaries), fresh / TRACES)
        write_table(measurements_frame(summaries), fresh / MEASUREMENTS)
