"""Stores the rounds of an unfinished search over commits: a file for each commit, written after each round.

``.ldos/bisect/<stack>/<host class>/<scenario>/<good>..<bad>/`` holds ``<commit>.json``. The files of a finished search
are deleted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_ldos.campaign.commits.listing import Commit
from pytest_ldos.campaign.commits.rounds import Records, Side
from pytest_ldos.campaign.damaged_files import set_damaged_aside
from pytest_ldos.campaign.kept_documents import plain_spec, plain_trials, read_document, write_document
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.codec import decode_trials
from pytest_ldos.scenario.model import ScenarioSpec

FOLDER: Final = "bisect"
KIND: Final = "pytest-ldos rounds of a commit"


@dataclass(frozen=True)
class CommitEvidence:
    """The rounds of one search.

    Attributes:
        spec: the scenario that is measured.
        where: identity of the machine; see `campaign.measured_version`.
    """

    folder: Path
    spec: ScenarioSpec
    where: Mapping[str, str]

    @classmethod
    def of(
        cls,
        output: Path,
        key: BaselineKey,
        ends: tuple[Commit, Commit],
        *,
        spec: ScenarioSpec,
        where: Mapping[str, str],
    ) -> CommitEvidence:
        good, bad = ends
        return cls(key.folder(output / FOLDER) / f"{good.name}..{bad.name}", spec, where)

    def keep(self, commit: Commit, records: Records) -> None:
        """Writes all rounds of a commit.

        Raises:
            NotWritten: they could not be written; those of before are whole.
        """
        sides = {side: plain_trials(trials) for side, trials in records.items()}
        write_document(self._file(commit), {"kind": KIND, **self._setting, "sides": sides})

    def records(self, commit: Commit) -> Records:
        """Rounds of a commit that an earlier call made with the same setting here; empty if there are none.

        Raises:
            RecordUnreadable: the file is damaged; names it.
        """
        file = self._file(commit)
        if not file.is_file():
            return {}
        document = _read(file)
        if {name: document[name] for name in self._setting} != self._setting:
            return {}
        return {side: decode_trials(json.dumps(each), file) for side, each in document["sides"].items()}

    def set_damaged_aside(self) -> list[Path]:
        """See `set_damaged_aside`."""
        return set_damaged_aside(sorted(self.folder.glob("*.json")), _decode)

    def drop(self) -> None:
        """Deletes the files of a finished search."""
        for file in self.folder.glob("*.json"):
            file.unlink()

    @property
    def _setting(self) -> dict[str, Any]:
        return {"asked": plain_spec(self.spec), "where": dict(self.where)}

    def _file(self, commit: Commit) -> Path:
        return self.folder / f"{commit.name}.json"


def _decode(file: Path) -> None:
    for each in _read(file)["sides"].values():
        decode_trials(json.dumps(each), file)


def _read(file: Path) -> dict[str, Any]:
    return read_document(file, _parse, remedy=f"delete {file.name}: its rounds are measured again")


def _parse(document: Any) -> dict[str, Any]:
    sides = {Side(name): each for name, each in document["sides"].items()}
    return {"asked": document["asked"], "where": document["where"], "sides": sides}
