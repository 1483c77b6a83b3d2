"""Records of a sweep's stack starts, their JSON format, and their combination by cell."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.plain import PlainReader
from pytest_ldos.campaign.cells import Cell
from pytest_ldos.campaign.criterion import with_lost_motion
from pytest_ldos.campaign.sequence import append_start
from pytest_ldos.measure.trial.codec import decode_trials, encode_trials
from pytest_ldos.measure.trial.record import TrialSet

SCHEMA: Final = 1
KIND: Final = "pytest-ldos sweep start"


class CellState(StrEnum):
    """State of a start or a cell, from best to worst.

    `BROKEN` means that the arm could not continue under its loads (`campaign.criterion`): a result with fewer trials.
    """

    MEASURED = "measured"
    BROKEN = "broken"
    SKIPPED = "skipped"
    INVALID = "invalid"
    INFRA = "infra"


TRUSTED: Final = frozenset({CellState.MEASURED, CellState.BROKEN})
"""States of valid results."""


@dataclass(frozen=True, kw_only=True)
class StartRecord:
    """One stack start of one cell.

    Attributes:
        cell: the name of its scenario.
        start: number of the start within the cell, from 0.
        reason: reason why it was not measured, or its trials are invalid or fewer than planned; empty
            otherwise.
        trials: the measured trials, if any.
        began_ns, ended_ns: begin and end of the machine's reservation, Unix time.
        host: name of the machine.
        verdict: verdict of the cell's test; empty if the cell is not a test.
        message: failure message of that test.
    """

    cell: str
    start: int
    state: CellState
    reason: str = ""
    trials: TrialSet | None = None
    began_ns: int = 0
    ended_ns: int = 0
    host: str = ""
    verdict: str = ""
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """All starts of a cell.

    Attributes:
        planned: number of planned starts.
    """

    cell: Cell
    records: tuple[StartRecord, ...]
    planned: int

    @property
    def state(self) -> CellState | None:
        """The worst state of its starts; ``None`` if there are none yet."""
        return max((record.state for record in self.records), key=list(CellState).index, default=None)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Distinct reasons why it is not as planned."""
        return tuple(dict.fromkeys(record.reason for record in self.records if record.reason))

    @property
    def trials(self) -> TrialSet | None:
        """Trials of all valid starts; if there are none, of all starts."""
        joined: TrialSet | None = None
        for trials in self._sets:
            joined = append_start(joined, trials)
        return joined

    @property
    def failures(self) -> tuple[bool, ...]:
        """True for each trial that failed, including its reset; see `with_lost_motion`."""
        found = (with_lost_motion([not each.succeeded for each in trials.trials], trials) for trials in self._sets)
        return tuple(itertools.chain.from_iterable(found))

    @property
    def _sets(self) -> list[TrialSet]:
        trusted = [record for record in self.records if record.state in TRUSTED]
        return [record.trials for record in trusted or self.records if record.trials is not None]

    @property
    def is_done(self) -> bool:
        return len(self.records) >= self.planned


def collect(cells: Iterable[Cell], records: Mapping[tuple[str, int], StartRecord], starts: int) -> list[CellResult]:
    """The results of all cells, in the order of the grid; starts beyond the planned ones are ignored."""
    found = []
    for cell in cells:
        mine = (records.get((cell.name, start)) for start in range(starts))
        found.append(CellResult(cell=cell, records=tuple(each for each in mine if each is not None), planned=starts))
    return found


def encode_start(record: StartRecord) -> str:
    """JSON text of a record; its trials are encoded by `trial.codec`."""
    trials = None if record.trials is None else json.loads(encode_trials(record.trials))
    plain = {**vars(record), "state": record.state.value, "trials": trials}
    return json.dumps({"kind": KIND, "schema": SCHEMA, **plain}, indent=1, allow_nan=False) + "\n"


def decode_start(text: str, path: Path) -> StartRecord:
    """Decodes a record from JSON text; `path` is named in errors.

    Raises:
        RecordUnreadable: it is not a record, or damaged.
    """
    try:
        return _to_record(json.loads(text), path)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason = f"{path} is damaged ({type(error).__name__}: {error})"
        raise RecordUnreadable(reason, remedy="delete it: the start is measured again") from None


def _to_record(document: Any, path: Path) -> StartRecord:
    values = dict(document)
    if (values.pop("kind", None), values.pop("schema", None)) != (KIND, SCHEMA):
        raise ValueError("it holds no start of a sweep that this version reads")
    reader = PlainReader({TrialSet: lambda trials, _: decode_trials(json.dumps(trials), path)})
    record: StartRecord = reader.read(StartRecord, values, "the record")
    return record
