"""Stores the starts of an unfinished search: each is on disk as soon as it is measured.

``.ldos/breaking/<stack>/<host class>/<scenario>/<address>/`` holds ``start-0001.json`` …
The starts of a finished search are deleted.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.campaign.damaged_files import set_damaged_aside
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.artifacts import resumable
from pytest_ldos.measure.trial.codec import decode_trials, encode_trials
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
            "asked": plain(spec),
            "version": dict(version),
            "trials": json.loads(encode_trials(trials)),
        }
        with resumable():
            write_atomically(self.folder / f"start-{number:04d}.json", json.dumps(document, allow_nan=False) + "\n")

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


def plain(spec: ScenarioSpec) -> Any:
    """A scenario as JSON values, for comparison."""
    return json.loads(json.dumps(dataclasses.asdict(spec), default=str))


def _read(file: Path) -> KeptStart:
    remedy = f"delete {file.name}: the search measures it again"
    try:
        document = json.loads(file.read_text("utf-8"))
        level, asked, version = float(document["level"]), document["asked"], dict(document["version"])
        trials = json.dumps(document["trials"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise RecordUnreadable(f"{file} is damaged ({type(error).__name__}: {error})", remedy=remedy) from None
    return KeptStart(level, asked, version, decode_trials(trials, file))
