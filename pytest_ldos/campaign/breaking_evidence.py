"""Stores the starts of an unfinished search: each is on disk as soon as it is measured.

``.ldos/breaking/<stack>/<host class>/<scenario>/<address>/`` holds ``start-0001.json`` …
The starts of a finished search are deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.campaign.damaged_files import set_damaged_aside
from pytest_ldos.campaign.kept_documents import plain_spec, plain_trials, read_document, write_document
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.codec import decode_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.model import ScenarioSpec

FOLDER: Final = "breaking"
KIND: Final = "pytest-ldos start of a search"
_START: Final = re.compile(r"start-([0-9]{1,9})\.json")


@dataclass(frozen=True)
class KeptStart:
    """One measured start.

    Attributes:
        asked: the requested scenario, as plain values.
        version: identity of what was measured, and where; see `campaign.measured_version`.
    """

    level: float
    asked: Any
    version: Mapping[str, str]
    trials: TrialSet


@dataclass(frozen=True)
class BreakingEvidence:
    """The starts of one search."""

    folder: Path

    @classmethod
    def of(cls, output: Path, key: BaselineKey, address: str) -> BreakingEvidence:
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", address)
        return cls(key.folder(output / FOLDER) / safe)

    def keep(self, level: float, spec: ScenarioSpec, trials: TrialSet, version: Mapping[str, str]) -> None:
        """Writes a start to disk.

        Raises:
            NotWritten: it could not be written.
        """
        number = 1 + max((number for number, _ in self._files()), default=0)
        document = {
            "kind": KIND,
            "level": level,
            "asked": plain_spec(spec),
            "version": dict(version),
            "trials": plain_trials(trials),
        }
        write_document(self.folder / f"start-{number:04d}.json", document)

    def starts(self) -> list[KeptStart]:
        """The stored starts, in the order of measurement.

        Raises:
            RecordUnreadable: a file is damaged; names it.
        """
        return [_read(file) for _, file in self._files()]

    def __len__(self) -> int:
        """Number of stored starts."""
        return len(self._files())

    def set_damaged_aside(self) -> list[Path]:
        """See `set_damaged_aside`."""
        return set_damaged_aside([file for _, file in self._files()], _read)

    def drop(self, *, but: Callable[[KeptStart], bool]) -> None:
        """Deletes the starts of a finished search, except those (`but`) that another search may resume from."""
        for _, file in self._files():
            if not but(_read(file)):
                file.unlink(missing_ok=True)

    def _files(self) -> list[tuple[int, Path]]:
        found = ((_START.fullmatch(file.name), file) for file in self.folder.glob("start-*.json"))
        return sorted((int(match[1]), file) for match, file in found if match)


def _read(file: Path) -> KeptStart:
    level, asked, version, trials = read_document(
        file, _parse, remedy=f"delete {file.name}: the search measures it again"
    )
    return KeptStart(level, asked, version, decode_trials(trials, file))


def _parse(document: Any) -> tuple[float, Any, dict[str, str], str]:
    version, trials = dict(document["version"]), json.dumps(document["trials"])
    return float(document["level"]), document["asked"], version, trials
