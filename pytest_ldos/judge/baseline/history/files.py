"""Parquet files of the history: their format, how they are written, and how damage is detected.

A file appears under its name only when complete: a reader sees all of it or nothing. A killed writer leaves a
hidden file that is never read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.parquet import FAULTS, read_whole, reason_of, sealed
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.judge.baseline.history.rows import SCHEMA

SCHEMA_VERSION: Final = 1
SUFFIX: Final = ".parquet"
_VERSION_KEY: Final = "pytest-ldos history"
_SETS_KEY: Final = "pytest-ldos trial sets"


@dataclass(frozen=True)
class HistoryFile:
    """A file with rows of `rows.SCHEMA`.

    Attributes:
        sets: identities of the sets of trials in it.
    """

    path: Path
    sets: frozenset[str]


@dataclass(frozen=True)
class Damaged:
    """A file that is left out because it is damaged."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path} is damaged and left out: {self.reason} (take it from a copy, or delete it)"


def write_file(path: Path, rows: pl.DataFrame) -> None:
    """Writes a file of this schema version atomically.

    Raises:
        NotWritten: it cannot be written.
    """
    sets = rows["trials"].unique().sort()
    content = sealed(rows, {_VERSION_KEY: str(SCHEMA_VERSION), _SETS_KEY: " ".join(sets)})
    write_atomically(path, content, otherwise="name another history with --dir, or --ldos-history")


def inspect_file(path: Path) -> HistoryFile | Damaged:
    """Reads a file's metadata.

    Raises:
        RecordUnreadable: it was written by something else, or by another version of this project.
        FileNotFoundError: it no longer exists.
    """
    try:
        content = read_whole(path)
        metadata = pl.read_parquet_metadata(content)
        schema = dict(pl.read_parquet_schema(content))
    except FileNotFoundError:
        raise
    except (ValueError, *FAULTS) as error:
        return Damaged(path, reason_of(error))
    version = metadata.get(_VERSION_KEY)
    if version is None:
        raise RecordUnreadable(
            f"{path} is no file of a history of pytest-ldos", remedy="move it elsewhere, or name another --ldos-history"
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
    """Rows of all files except damaged ones; ``None`` instead of a table if no file can be read.

    Args:
        metrics: read only these; if empty, all.
        columns: read only these; if empty, all.

    Raises:
        FileNotFoundError: one of the files no longer exists.
    """
    if not files:
        return None, []
    try:
        return _read([file.path for file in files], metrics, columns), []
    except FileNotFoundError:
        raise
    except FAULTS as error:
        if len(files) == 1:
            return None, [Damaged(file.path, reason_of(error)) for file in files]
    parts = [read_rows([file], metrics=metrics, columns=columns) for file in files]
    whole = [rows for rows, _ in parts if rows is not None]
    return pl.concat(whole) if whole else None, [each for _, damaged in parts for each in damaged]


def _read(paths: list[Path], metrics: Collection[str], columns: Collection[str]) -> pl.DataFrame:
    rows = pl.scan_parquet(paths, glob=False)
    if metrics:
        rows = rows.filter(pl.col("metric").is_in(sorted(metrics)))
    return (rows.select(sorted(columns)) if columns else rows).collect()
