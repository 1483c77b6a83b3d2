"""Stores the trials behind calibrations: one file per run, and one for an unfinished run.

``.ldos/calibration/<stack>/<host class>/<scenario>/`` holds ``run-001.json`` … and ``unfinished.json``.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.campaign.starts import template_of
from pytest_ldos.host.interference import add_up
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.measure.trial.record import TrialSet

FOLDER: Final = "calibration"
_UNFINISHED: Final = "unfinished.json"
_RUN: Final = re.compile(r"run-[0-9]{1,9}\.json")


@dataclass(frozen=True)
class Evidence:
    """The runs of one scenario on one host class."""

    folder: Path

    @classmethod
    def of(cls, output: Path, key: BaselineKey) -> Evidence:
        return cls(key.folder(output / FOLDER))

    def runs(self) -> list[TrialSet]:
        """The finished runs, in chronological order.

        Raises:
            RecordUnreadable: a file is damaged; names it.
        """
        return [read_trials(file) for file in self._files()]

    def unfinished(self) -> TrialSet | None:
        """The starts of an interrupted run; ``None`` if there are none, or if they are damaged."""
        try:
            return read_trials(self.folder / _UNFINISHED)
        except RecordUnreadable:
            return None

    def keep(self, run: TrialSet) -> None:
        """Saves the starts of a run that is not finished."""
        write_atomically(self.folder / _UNFINISHED, encode_trials(run))

    def finish(self, run: TrialSet, *, keep_earlier: bool) -> None:
        """Saves a complete run; only then deletes earlier ones, unless they are kept."""
        earlier = self._files()
        number = 1 + max((_number_of(file) for file in earlier), default=0)
        write_atomically(self.folder / f"run-{number:03d}.json", encode_trials(run))
        for file in (self.folder / _UNFINISHED, *(() if keep_earlier else earlier)):
            file.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        """Files that this class wrote; copies beside them, under whatever name, are ignored."""
        ours = (file for file in self.folder.glob("run-*.json") if _RUN.fullmatch(file.name))
        return sorted(ours, key=_number_of)


def _number_of(file: Path) -> int:
    return int(file.stem.removeprefix("run-"))


def append_start(run: TrialSet | None, start: TrialSet) -> TrialSet:
    """Appends a start to a run."""
    if run is None:
        return start
    losses = run.discarded_events + start.discarded_events
    return dataclasses.replace(
        run,
        trials=(*run.trials, *start.trials),
        loads=(*run.loads, *start.loads),
        discarded_events=losses,
        incomplete=start.incomplete or run.incomplete,
        surroundings=add_up(each.surroundings for each in (run, start) if each.surroundings is not None),
        repeated=(*run.repeated, *start.repeated),
        metrics=template_of([run, start]).metrics,
    )


def is_of_same_kind(run: TrialSet, other: TrialSet) -> bool:
    """True if starts of both can be pooled: the same version, measured in the same way."""
    return (
        BaselineKey.of(run) == BaselineKey.of(other)
        and run.spec == other.spec
        and run.commit == other.commit
        and run.fingerprint.versions == other.fingerprint.versions
    )


def is_of_same_version(run: TrialSet, other: TrialSet) -> bool:
    """True if both measure the noise of one version: as `is_of_same_kind`, for any number of trials per start."""
    alike = dataclasses.replace(run.spec, trials=other.spec.trials, max_trials=other.spec.max_trials)
    return is_of_same_kind(dataclasses.replace(run, spec=alike), other)
