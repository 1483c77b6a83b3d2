"""Models, many traces and studies as Parquet files, for any tool that reads tables."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import polars as pl

from pytest_ldos.base.files import writing
from pytest_ldos.base.parquet import write_table
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.fleet.traces import TraceSummary
from pytest_ldos.instruments.study import ROUNDS, Column, Study
from pytest_ldos.trace.execution.model import MANIFEST, ExecutionModel, write_model


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """Creates a temporary folder on the disk of a future file or folder, or raises an `OSError`; deletes it on exit."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
        yield Path(folder)


@contextmanager
def replaced(directory: Path, *, is_ours: Callable[[Path], bool]) -> Iterator[Path]:
    """Yields the path for a new folder, which replaces `directory` on exit, if `is_ours`, unless there is an error.

    Raises an `OSError` if the directory cannot be written, or holds something else.
    """
    with staging_folder(directory) as folder:
        fresh = folder / directory.name
        yield fresh
        if is_ours(directory):
            directory.rename(folder / "before")  # if the process ends here, neither is lost
        fresh.rename(directory)


def is_model_directory(directory: Path) -> bool:
    """True if all files in the directory were written by `write_parquet`, so that it can be replaced."""
    names = {path.name for path in directory.iterdir()} if directory.is_dir() else set()
    return MANIFEST in names and all(name == MANIFEST or name.endswith(".parquet") for name in names)


def write_parquet(model: ExecutionModel, directory: Path) -> None:
    """Writes ``TABLE.parquet`` for each table, and ``model.json``; `read_model` reads them back.

    All files appear at once or, with an `OSError` of `replaced`, none. An existing model is replaced.
    """
    with replaced(directory, is_ours=is_model_directory) as fresh:
        write_model(model, fresh, target=directory)


TRACES: Final = "traces.parquet"
MEASUREMENTS: Final = "measurements.parquet"

_COUNTS: Final = ("events", "nodes", "reached", "failed", "unknown", "lost_events", "lost_packets")
_TRACES: Final[dict[str, Any]] = {
    **dict.fromkeys(("trace", "problem"), pl.String),
    **dict.fromkeys(_COUNTS, pl.Int64),
    "damage": pl.String,
}
_MEASUREMENTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("trace", "goal", "goal_id"), pl.String),
    "began_ns": pl.Int64,
    **dict.fromkeys(("outcome", "metric", "unit", "status"), pl.String),
    "value": pl.Float64,
    **dict.fromkeys(("reason", "source"), pl.String),
}


def traces_frame(summaries: Sequence[TraceSummary]) -> pl.DataFrame:
    """One row per trace; if it could not be read, `problem` states the reason, and the counts are null."""
    rows = [{name: getattr(each, name) for name in _TRACES} for each in summaries]
    unknown = pl.when(pl.col("problem") == "").then(pl.col(*list(_TRACES)[2:]))
    return pl.DataFrame(rows, schema=_TRACES).with_columns(unknown)


def measurements_frame(summaries: Sequence[TraceSummary]) -> pl.DataFrame:
    """One row per trace, goal and metric; if `value` is null, `reason` states why."""
    rows = [{"trace": summary.trace, **asdict(each)} for summary in summaries for each in summary.values]
    return pl.DataFrame(rows, schema=_MEASUREMENTS)


def is_fleet_directory(directory: Path) -> bool:
    """True if all files in the directory were written by `write_fleet`, so that it can be replaced."""
    return directory.is_dir() and {path.name for path in directory.iterdir()} == {TRACES, MEASUREMENTS}


def require_writable(directory: Path) -> None:
    """Checks that `write_fleet` can write there, or raises an `OSError`."""
    with staging_folder(directory):
        pass


def write_fleet(summaries: Sequence[TraceSummary], directory: Path) -> None:
    """Writes ``traces.parquet`` and ``measurements.parquet``, both or, with an `OSError` of `replaced`, none."""
    with replaced(directory, is_ours=is_fleet_directory) as fresh:
        fresh.mkdir()
        write_table(traces_frame(summaries), fresh / TRACES)
        write_table(measurements_frame(summaries), fresh / MEASUREMENTS)


_UNITS = {"µs": "us", "%": "percent"}


def write_study_tables(study: Study, directory: Path) -> list[Path]:
    """Writes ``TABLE.parquet`` for each table, and ``rounds.parquet`` with a row for each round and quantity.

    Columns are named ``NAME_UNIT`` (``p99_us``). Files of the same name are replaced. For errors see `writing`.
    """
    frames = {}
    for table in study.tables:
        columns = {name_of(column): [row[place] for row in table.rows] for place, column in enumerate(table.columns)}
        frames[table.name] = pl.DataFrame(columns, strict=False)
    frames[ROUNDS] = rounds_frame(study)
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for name, frame in frames.items():
            write_table(frame, directory / f"{name}.parquet")
    return [directory / f"{name}.parquet" for name in frames]


def rounds_frame(study: Study) -> pl.DataFrame:
    """``round``, ``case``, ``block``, ``quantity``, ``unit``, ``value`` and, if there is no value, its ``reason``."""
    units = {each.name: each.unit for each in study.quantities}
    rows = []
    for number, each in enumerate(study.rounds):
        for name, value in {**dict.fromkeys(units, Missing(each.failure)), **each.values}.items():
            why = (value.reason or each.failure or "not measured") if isinstance(value, Missing | Invalid) else ""
            rows.append((number, each.case, each.block, name, units[name], None if why else value, why))
    schema = {
        "round": pl.Int64,
        "case": pl.String,
        "block": pl.Int64,
        "quantity": pl.String,
        "unit": pl.String,
        "value": pl.Float64,
        "reason": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def name_of(column: Column) -> str:
    unit = _UNITS.get(column.unit, column.unit)
    return f"{column.name}_{unit}" if unit else column.name
