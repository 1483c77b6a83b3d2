"""Stores the results of a sweep: one file per stack start, written when it is measured.

``.ldos/sweeps/<name>/<time>-<digest>/`` holds ``sweep.json``, the definition, and ``cells/<cell>.<start>.json``. A
sweep resumes only in a folder with the same key (a digest of scenario and values, and the version and the machine),
so that cells of different definitions are never mixed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.campaign.cells import Grid, Outline
from pytest_ldos.campaign.damaged_files import set_damaged_aside
from pytest_ldos.campaign.sweep_records import StartRecord, decode_start, encode_start
from pytest_ldos.measure.trial.artifacts import new_folder, resumable

FOLDER: Final = "sweeps"
DEFINITION_FILE: Final = "sweep.json"
CELLS: Final = "cells"
KIND: Final = "pytest-ldos sweep"
SCHEMA: Final = 1

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,+@=-]{0,180}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.,+@=-]+")


@dataclass(frozen=True)
class SweepKey:
    """Identity of a sweep.

    Attributes:
        name: also the name of its parent folder.
        digest: digest of the definition.
        version: identity of what is measured, and where; see `campaign.measured_version`.
    """

    name: str
    digest: str
    version: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Definition:
    """Definition of a sweep.

    Attributes:
        root: root of the project; paths below it count as equal on each machine.
    """

    name: str
    grid: Grid
    version: Mapping[str, str] = field(default_factory=dict)
    root: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigurationError(
                f"a sweep cannot be called {self.name!r}", remedy="use letters, digits and _ . + @ = -, at most 180"
            )

    @cached_property
    def key(self) -> SweepKey:
        """Key with a digest of all that makes two sweeps the same; the number of starts per cell is not part of it."""
        text = json.dumps(self.to_plain(), sort_keys=True)
        plain = text.replace(self.root, ".") if self.root else text
        return SweepKey(self.name, hashlib.sha256(plain.encode()).hexdigest()[:12], self.version)

    def to_plain(self) -> dict[str, Any]:
        """The definition as JSON values."""
        cells = {cell.name: dict(cell.assignments) for cell in self.grid.outline.cells}
        base = self.grid.base
        spec = {**asdict(base), "loads": {load.KIND: asdict(load) for load in base.loads}}
        return {"axes": list(self.grid.outline.addresses), "cells": cells, "scenario": spec}


def name_for(text: str) -> str:
    """Converts a text, such as a test's name, to a valid name of a sweep."""
    return _UNSAFE.sub("_", text).lstrip(".,+@=-")[-180:].lstrip(".,+@=-") or "sweep"


@dataclass(frozen=True)
class SweepFolder:
    """The results of one sweep."""

    path: Path

    def keep(self, record: StartRecord) -> None:
        """Writes the record of a start.

        Raises:
            NotWritten: it could not be written.
        """
        with resumable():
            write_atomically(self._file(record.cell, record.start), encode_start(record))

    def records(self) -> dict[tuple[str, int], StartRecord]:
        """All records, by cell and start.

        Raises:
            RecordUnreadable: a file is damaged; names it.
        """
        return _by_start(map(read_start, self.files()))

    def readable_records(self) -> dict[tuple[str, int], StartRecord]:
        """All records but the damaged ones, which count as not measured."""
        return _by_start(_readable(self.files()))

    def set_damaged_aside(self) -> list[Path]:
        """See `set_damaged_aside`."""
        return set_damaged_aside(self.files(), read_start)

    def files(self) -> list[Path]:
        """Files of all measured starts."""
        return sorted((self.path / CELLS).glob("[!.]*.json"))

    def key(self) -> SweepKey | None:
        """The key of the sweep; ``None`` if it cannot be read."""
        document = self._definition()
        if document is None:
            return None
        return SweepKey(str(document.get("name")), str(document.get("digest")), document.get("version", {}))

    def outline(self) -> Outline:
        """Outline of its cells.

        Raises:
            RecordUnreadable: its definition is damaged.
        """
        document = self._definition() or {}
        try:
            return Outline.of(document["scenario"]["name"], document["axes"], document["cells"])
        except (AttributeError, KeyError, TypeError, ValueError):
            file = self.path / DEFINITION_FILE
            raise RecordUnreadable(f"{file} is damaged", remedy="delete its folder") from None

    def _definition(self) -> dict[str, Any] | None:
        try:
            document = json.loads((self.path / DEFINITION_FILE).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        known = isinstance(document, dict) and document.get("kind") == KIND and document.get("schema") == SCHEMA
        return document if known else None

    def _file(self, cell: str, start: int) -> Path:
        return self.path / CELLS / f"{cell}.{start + 1}.json"


def _by_start(records: Iterable[StartRecord]) -> dict[tuple[str, int], StartRecord]:
    return {(record.cell, record.start): record for record in records}


def _readable(files: Iterable[Path]) -> Iterator[StartRecord]:
    for file in files:
        with contextlib.suppress(RecordUnreadable):
            yield read_start(file)


def read_start(file: Path) -> StartRecord:
    """Reads the record of one start.

    Raises:
        RecordUnreadable: the file is damaged, or cannot be read.
    """
    try:
        text = file.read_text("utf-8", errors="replace")
    except OSError as error:
        raise RecordUnreadable(f"{file} cannot be read: {error.strerror}") from None
    return decode_start(text, file)


def find_sweep(output: Path, key: SweepKey) -> SweepFolder | None:
    """The newest folder of a sweep with the same definition and version."""
    return next((each for each in all_sweeps(output, key.name) if each.key() == key), None)


def all_sweeps(output: Path, name: str = "*") -> list[SweepFolder]:
    """The folders of all sweeps, or of those with a name; the newest first."""
    found = (output / FOLDER).glob(f"{name if name == '*' else escape(name)}/*/{DEFINITION_FILE}")
    return [SweepFolder(file.parent) for file in sorted(found, key=lambda file: file.parent.name, reverse=True)]


def new_sweep(output: Path, key: SweepKey, definition: Mapping[str, Any]) -> SweepFolder:
    """Creates a folder for a new sweep.

    Args:
        definition: as returned by `Definition.to_plain`.

    Raises:
        NotWritten: it could not be created.
    """
    now = datetime.now(UTC)
    path = new_folder(output, f"{FOLDER}/{key.name}/{now:%Y%m%d-%H%M%S-%f}-{key.digest}")
    made_at = now.isoformat(timespec="seconds")
    document = {"kind": KIND, "schema": SCHEMA, **asdict(key), "made_at": made_at, **definition}
    write_atomically(path / DEFINITION_FILE, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return SweepFolder(path)
