"""The history on disk, one data set of many files: ``DIR/<stack>/<host class>/<scenario>/*.parquet``.

A file appears under its name only when it is complete. A killed writer leaves a
hidden file that is never read.

Every run adds files of its own, so that concurrent runs do not conflict. Once there are many files, they are merged
into one. A killed merge loses nothing: rows that occur in two files count once.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable
from pytest_ldos.base.parquet import FAULTS, read_whole, reason_of, sealed
from pytest_ldos.base.writable import require_writable_folder, write_atomically, writing
from pytest_ldos.host.checkout import ask_git
from pytest_ldos.judge.baseline.history.rows import SCHEMA
from pytest_ldos.judge.baseline.key import BaselineKey

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
    """A damaged file, which is left out."""

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
        RecordUnreadable: it was written by another program, or by another version of this project.
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


_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.+-]")
_MERGED: Final = "merged-"
_MERGE_FROM: Final = 128
_LOCK: Final = ".lock"
_SAME_ROW: Final = ("trials", "metric", "trial")
_ATTEMPTS: Final = 5
_WHERE: Final = "name a directory that can be written: --ldos-history DIR, or LDOS_HISTORY"


@dataclass(frozen=True)
class Rows:
    """Rows that were read.

    Attributes:
        table: columns of `rows.SCHEMA`, unordered.
        damaged: files that were left out.
    """

    table: pl.DataFrame
    damaged: tuple[Damaged, ...] = ()


@dataclass(frozen=True)
class HistoryStore:
    """A directory of runs."""

    directory: Path

    def require_writable(self) -> None:
        """Creates the directory and checks that files can be written there.

        Raises:
            ConfigurationError, NotWritten: it is a file, or cannot be made or written.
            RecordUnreadable: it holds the files of something else or of another version.
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
        """Adds the rows of one set of trials; returns True if it was new.

        Raises:
            RecordUnreadable: files of something else or of another version are there.
            NotWritten: it cannot be written.
        """
        first = rows.row(0, named=True)
        folder = self.folder(BaselineKey.of_row(first))
        if first["trials"] in self._known_sets(folder):
            return False
        write_file(folder / f"{first['started_at']:%Y%m%d-%H%M%S}-{first['trials']}{SUFFIX}", rows)
        self._merge(folder)
        return True

    def folder(self, key: BaselineKey) -> Path:
        """Folder of the runs with a key; each key has its own."""
        safe = {name: _UNSAFE.sub("_", part) for name, part in vars(key).items()}
        return BaselineKey(**safe).folder(self.directory)

    def read(self, *, metrics: Collection[str] = (), columns: Collection[str] = ()) -> Rows:
        """The rows of all runs, each once.

        Args:
            metrics: read only these; if empty, all.
            columns: read only these and those that identify a row; if empty, all.

        Raises:
            RecordUnreadable: there are files of something else or of another version.
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
        yield _locked(descriptor)
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


FILE: Final = "pin.json"
KIND: Final = "pytest-ldos history pin"


@dataclass(frozen=True)
class Pin:
    """The pinned anchor of a series.

    Attributes:
        commit: a commit, with all its runs; empty if one run is pinned.
        trials: identity of the run's set of trials; empty if a commit is pinned.
        name: as given by the user.
    """

    commit: str
    trials: str
    name: str


def write_pin(folder: Path, pin: Pin) -> Path:
    """Pins a series and replaces an earlier pin.

    Raises:
        NotWritten, ConfigurationError: it cannot be written.
    """
    file = folder / FILE
    document = {"kind": KIND, "schema": SCHEMA_VERSION, **asdict(pin)}
    write_atomically(file, json.dumps(document, indent=1) + "\n")
    return file


def remove_pin(folder: Path) -> bool:
    """Removes the pin; returns True if there was one."""
    file = folder / FILE
    was_there = file.exists()
    file.unlink(missing_ok=True)
    return was_there


def read_pin(folder: Path) -> Pin | None:
    """The pin of a series; ``None`` if there is none.

    Raises:
        RecordUnreadable: the file is damaged or of another version.
    """
    file = folder / FILE
    try:
        return _decode(json.loads(file.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordUnreadable(f"{file} is damaged ({error})", remedy="pin again: ldos history pin COMMIT") from None


def _decode(document: Any) -> Pin:
    if (document["kind"], document["schema"]) != (KIND, SCHEMA_VERSION):
        raise ValueError(f"kind {document['kind']!r}, schema version {document['schema']!r}")
    return Pin(str(document["commit"]), str(document["trials"]), str(document["name"]))


_OF_CI: Final = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")
"""Variables with the branch name: CI systems check out a commit without its branch."""


def branch_of(checkout: Path) -> str:
    """The branch's name; empty outside git, or on a detached commit without a branch name from CI."""
    named = ask_git(checkout, "symbolic-ref", "--short", "--quiet", "HEAD")
    return named or next((name for variable in _OF_CI if (name := os.environ.get(variable, ""))), "")
