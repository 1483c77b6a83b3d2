"""The history on disk, one data set of many files: ``DIR/<stack>/<host class>/<scenario>/*.parquet``.

A file appears under its name only when it is complete; a killed writer leaves a hidden file that is never read. Every
run adds files of its own, so that concurrent runs do not conflict. Once there are many files, they are merged into one.
A killed merge loses nothing: rows that occur in two files count once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import polars as pl

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable
from pytest_ldos.base.files import require_writable_folder, write_atomically, writing
from pytest_ldos.base.parquet import FAULTS, read_whole, reason_of, sealed
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.text import visible
from pytest_ldos.host.checkout import ask_git
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.metrics import model
from pytest_ldos.measure.trial.record import Trial, TrialSet


class Version(StrEnum):
    HEAD = "head"
    BASE = "base"


class Status(StrEnum):
    MEASURED = "measured"
    CENSORED = "censored"
    """The trial failed before the latency ended: it counts as infinitely slow."""
    MISSING = "missing"
    INVALID = "invalid"


SCHEMA: Final[dict[str, Any]] = {
    "trials": pl.String,
    "run": pl.String,
    "started_at": pl.Datetime("us", "UTC"),
    "commit": pl.String,
    "branch": pl.String,
    "scenario": pl.String,
    "stack": pl.String,
    "host_class": pl.String,
    "hostname": pl.String,
    "session": pl.String,
    "version": pl.String,
    "verdict": pl.String,
    "metric": pl.String,
    "title": pl.String,
    "unit": pl.String,
    "better": pl.String,
    "adjust_for": pl.List(pl.String),
    "adjust_where_alike": pl.List(pl.String),
    "goal": pl.String,
    "trial": pl.Int32,
    "block": pl.Int32,
    "outcome": pl.String,
    "status": pl.String,
    "value": pl.Float64,
    "reason": pl.String,
    "source": pl.String,
    model.PLANNED_DURATION: pl.Float64,
    model.CPU_WORK: pl.Float64,
    model.PLANS_CPU_WORK: pl.Float64,
    model.WAITED_FOR_OTHERS: pl.Float64,
}
"""Columns. ``trials`` identifies a set of trials; ``run`` is the folder that it was saved in. ``adjust_for`` and
``adjust_where_alike`` name covariates that explain part of the variation (see `metrics.model.Metric`). ``value`` is
null unless ``status`` is ``measured``; ``reason`` then says why it is null."""


KEPT_COVARIATES: Final = tuple(name for name in model.COVARIATES if name in SCHEMA)
"""Covariates that have a column; adding one would make existing files unreadable."""

INVALID: Final = "invalid"


def why_left_out(trials: TrialSet, verdict: str) -> str:
    if verdict == INVALID:
        return "the measurement was invalid"
    return "watched, which makes them slower" if trials.watched else ""


def build_rows(
    trials: TrialSet, *, run: str, branch: str, verdict: str, version: Version = Version.HEAD
) -> pl.DataFrame:
    """Rows of a set of trials, with the columns of `SCHEMA`; none if the trials are left out."""
    if why_left_out(trials, verdict):
        return pl.DataFrame(schema=SCHEMA)
    of_set = {
        "trials": identify(trials),
        "run": run,
        "started_at": started_at(trials),
        "commit": trials.commit,
        "branch": branch,
        **vars(BaselineKey.of(trials)),
        "hostname": trials.fingerprint.hostname,
        "session": trials.session,
        "version": version.value,
        "verdict": verdict,
    }
    return pl.DataFrame([{**of_set, **row} for row in _rows(trials)], schema=SCHEMA)


def identify(trials: TrialSet) -> str:
    """An identity computed from the trials themselves, independent of their file: goal ids are random."""
    parts = [trials.started_at, trials.scenario, trials.fingerprint.hostname, trials.commit, trials.session]
    parts += [f"{trial.index} {trial.identity}" for trial in trials.trials]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def started_at(trials: TrialSet) -> datetime:
    moment = datetime.fromisoformat(trials.started_at)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _rows(trials: TrialSet) -> Iterator[dict[str, Any]]:
    for metric in trials.metrics:
        of_metric = {
            "metric": metric.name,
            "title": metric.title,
            "unit": metric.unit,
            "better": metric.better.value,
            "adjust_for": list(metric.adjust_for),
            "adjust_where_alike": list(metric.adjust_where_alike),
        }
        for trial in trials.trials:
            yield {
                **of_metric,
                "goal": visible(trial.goal),
                "trial": trial.index,
                "block": trial.block,
                "outcome": trial.outcome.value,
                **{name: trial.covariates_ms.get(name) for name in KEPT_COVARIATES},
                **_of_value(trial, metric),
            }


def _of_value(trial: Trial, metric: model.Metric) -> dict[str, Any]:
    if not trial.succeeded and metric.censored_by_failure:
        reason = f"the trial ended as {trial.outcome}: {trial.message}".rstrip(": ")
        return {"status": Status.CENSORED.value, "value": None, "reason": visible(reason), "source": None}
    measurement = trial.measurements.get(metric.name, model.Measurement(Missing("it was not measured")))
    value = measurement.value
    if isinstance(value, Missing | Invalid):
        status = Status.MISSING if isinstance(value, Missing) else Status.INVALID
        return {"status": status.value, "value": None, "reason": visible(value.reason), "source": None}
    source = None if measurement.source is None else measurement.source.name
    return {"status": Status.MEASURED.value, "value": value, "reason": None, "source": source}


SCHEMA_VERSION: Final = 1
SUFFIX: Final = ".parquet"
_VERSION_KEY: Final = "pytest-ldos history"
_SETS_KEY: Final = "pytest-ldos trial sets"


@dataclass(frozen=True)
class HistoryFile:
    """A file with rows of `SCHEMA`, and the identities of the sets of trials in it."""

    path: Path
    sets: frozenset[str]


@dataclass(frozen=True)
class Damaged:
    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path} is damaged and left out: {self.reason} (take it from a copy, or delete it)"


def write_file(path: Path, rows: pl.DataFrame) -> None:
    """Writes a file of this schema version; for errors see `write_atomically`."""
    sets = rows["trials"].unique().sort()
    content = sealed(rows, {_VERSION_KEY: str(SCHEMA_VERSION), _SETS_KEY: " ".join(sets)})
    write_atomically(path, content, otherwise="name another history with --dir, or --ldos-history")


def inspect_file(path: Path) -> HistoryFile | Damaged:
    """Reads a file's metadata; raises `RecordUnreadable` if another program or another version of this one wrote it."""
    try:
        content = read_whole(path)
        metadata = pl.read_parquet_metadata(content)
        schema = dict(pl.read_parquet_schema(content))
    except FileNotFoundError:
        raise
    except (ValueError, *FAULTS) as error:
        return Damaged(path, reason_of(error))
    if (version := metadata.get(_VERSION_KEY)) is None:
        raise RecordUnreadable(
            f"{path} is not a history file of pytest-ldos", remedy="move it elsewhere, or name another --ldos-history"
        )
    if version != str(SCHEMA_VERSION):
        raise RecordUnreadable(
            f"{path} has schema version {version!r}, this version of pytest-ldos reads and writes {SCHEMA_VERSION}",
            remedy="use the version of pytest-ldos that wrote it, or name another --ldos-history; nothing was changed",
        )
    if schema != SCHEMA:
        return Damaged(path, "its columns are not those of a history")
    return HistoryFile(path, frozenset(metadata.get(_SETS_KEY, "").split()))


def read_rows(
    files: Collection[HistoryFile], *, metrics: Collection[str] = (), columns: Collection[str] = ()
) -> tuple[pl.DataFrame | None, list[Damaged]]:
    """Rows of all files except damaged ones, of the given metrics and columns, or of all.

    ``None`` instead of a table if no file can be read; raises `FileNotFoundError` if one no longer exists.
    """
    if not files:
        return None, []
    try:
        rows = pl.scan_parquet([file.path for file in files], glob=False)
        if metrics:
            rows = rows.filter(pl.col("metric").is_in(sorted(metrics)))
        return (rows.select(sorted(columns)) if columns else rows).collect(), []
    except FileNotFoundError:
        raise
    except FAULTS as error:
        if len(files) == 1:
            return None, [Damaged(file.path, reason_of(error)) for file in files]
    parts = [read_rows([file], metrics=metrics, columns=columns) for file in files]
    whole = [table for table, _ in parts if table is not None]
    return pl.concat(whole) if whole else None, [each for _, damaged in parts for each in damaged]


_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.+-]")
_MERGED: Final = "merged-"
_MERGE_FROM: Final = 128
_LOCK: Final = ".lock"
_SAME_ROW: Final = ("trials", "metric", "trial")
_ATTEMPTS: Final = 5
_WHERE: Final = "name a directory that can be written: --ldos-history DIR, or LDOS_HISTORY"


@dataclass(frozen=True)
class Rows:
    """Rows that were read, unordered, with columns of `SCHEMA`, and files that were left out."""

    table: pl.DataFrame
    damaged: tuple[Damaged, ...] = ()


@dataclass(frozen=True)
class HistoryStore:
    directory: Path

    def require_writable(self) -> None:
        """Creates the directory; raises `ConfigurationError` or `NotWritten` if files cannot be written there.

        Raises `RecordUnreadable` if it holds the files of something else or of another version.
        """
        self._refuse_file()
        require_writable_folder(self.directory, otherwise=_WHERE)
        for path in self._paths(self.directory):
            with suppress(FileNotFoundError):  # merged in the meantime
                inspect_file(path)

    def require_existing(self) -> None:
        """Raises `ConfigurationError` if there is no run."""
        self._refuse_file()
        if not any(self._paths(self.directory)):
            raise ConfigurationError(
                f"there is no run in the history {self.directory}",
                remedy=f"make one with pytest --ldos-history {self.directory}, or add saved ones: ldos history import",
            )

    def append(self, rows: pl.DataFrame) -> bool:
        """Adds the rows of one set of trials; returns True if it was new. For errors see `require_writable`."""
        first = rows.row(0, named=True)
        folder = self.folder(BaselineKey.of_row(first))
        if first["trials"] in self._known_sets(folder):
            return False
        write_file(folder / f"{first['started_at']:%Y%m%d-%H%M%S}-{first['trials']}{SUFFIX}", rows)
        self._merge(folder)
        return True

    def folder(self, key: BaselineKey) -> Path:
        """Folder of the runs with a key; each key has its own."""
        return BaselineKey(**{name: _UNSAFE.sub("_", part) for name, part in vars(key).items()}).folder(self.directory)

    def read(self, *, metrics: Collection[str] = (), columns: Collection[str] = ()) -> Rows:
        """The rows of all runs, each once, of the given metrics and columns, or of all.

        Columns that identify a row are always read. Raises `RecordUnreadable` for files of something else or of another
        version.
        """
        chosen = {*columns, *_SAME_ROW} if columns else ()
        for _ in range(_ATTEMPTS):
            try:
                files, damaged = self._inspect(self.directory)
                table, unreadable = read_rows(files, metrics=metrics, columns=chosen)
            except FileNotFoundError:
                continue  # merged in the meantime: the rows are in another file now
            if table is None:
                table = pl.DataFrame(schema=SCHEMA)
            is_twofold = sum(len(file.sets) for file in files) > len({each for file in files for each in file.sets})
            if is_twofold:
                table = table.unique(subset=_SAME_ROW, keep="any")
            return Rows(table, (*damaged, *unreadable))
        raise RecordUnreadable(f"files of {self.directory} disappear while they are read", remedy="try again")

    def _refuse_file(self) -> None:
        if self.directory.exists() and not self.directory.is_dir():
            raise ConfigurationError(f"the history {self.directory} is a file, not a directory", remedy=_WHERE)

    def _paths(self, below: Path) -> Iterator[Path]:
        return (path for path in sorted(below.rglob(f"*{SUFFIX}")) if not path.name.startswith("."))

    def _inspect(self, below: Path) -> tuple[list[HistoryFile], list[Damaged]]:
        found = [inspect_file(path) for path in self._paths(below)]
        whole = [file for file in found if isinstance(file, HistoryFile)]
        return whole, [file for file in found if isinstance(file, Damaged)]

    def _known_sets(self, folder: Path) -> set[str]:
        for _ in range(_ATTEMPTS):
            try:
                files, _ = self._inspect(folder)
                return {each for file in files for each in file.sets}
            except FileNotFoundError:
                continue
        return set()  # duplicate rows do no harm

    def _merge(self, folder: Path) -> None:
        """Merges many small files into one, unless another process is doing so."""
        loose = [path for path in self._paths(folder) if not path.name.startswith(_MERGED)]
        if len(loose) < _MERGE_FROM:
            return
        with _alone(folder) as is_alone:
            if not is_alone:
                return
            files = [file for path in loose if path.exists() and isinstance(file := inspect_file(path), HistoryFile)]
            table, damaged = read_rows(files)
            if table is None or damaged:
                return  # files that could not be read are not removed
            name = max(files, key=lambda file: file.path.name).path.name
            write_file(folder / f"{_MERGED}{name}", table.unique(subset=_SAME_ROW, keep="any"))
            for file in files:
                file.path.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Holds the folder's lock for merging; yields ``False`` if another process holds it."""
    with writing(folder / _LOCK):
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        is_alone = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_alone = False
        yield is_alone
    finally:
        os.close(descriptor)


_OF_CI: Final = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")
"""Variables with the branch name: CI systems check out a commit without its branch."""


def branch_of(checkout: Path) -> str:
    """The branch's name; empty outside git, or on a detached commit without a branch name from CI."""
    named = ask_git(checkout, "symbolic-ref", "--short", "--quiet", "HEAD")
    return named or next((name for variable in _OF_CI if (name := os.environ.get(variable, ""))), "")
