"""The history on disk: ``DIR/<stack>/<host class>/<scenario>/*.parquet``, one data set of many files.

Every run adds files of its own, so that concurrent runs do not conflict. Once there are many files, they are merged
into one. A killed merge loses nothing: rows that occur in two files count once.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable
from pytest_ldos.base.writable import require_writable_folder, writing
from pytest_ldos.judge.baseline.history.files import (
    SUFFIX,
    Damaged,
    HistoryFile,
    inspect_file,
    read_rows,
    write_file,
)
from pytest_ldos.judge.baseline.history.rows import SCHEMA
from pytest_ldos.judge.baseline.key import BaselineKey

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
        """Folder of the runs with a key; those of other keys are never mixed with them."""
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
        raise RecordUnreadable(f"files of {self.directory} vanish while they are read", remedy="try again")

    def _refuse_file(self) -> None:
        if self.directory.exists() and not self.directory.is_dir():
            raise ConfigurationError(f"the history {self.directory} is a file, no directory", remedy=_WHERE)

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
