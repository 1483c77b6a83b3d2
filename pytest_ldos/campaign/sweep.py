"""Measures the cells of a sweep; each start is on disk before the next begins.

``.ldos/sweeps/<name>/<time>-<digest>/`` holds ``sweep.json``, the definition, and ``cells/<cell>.<start>.json``. A
sweep resumes only with the same definition, version and machine.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property, partial
from glob import escape
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import ConfigurationError, LdosError, MachineBusy, RecordUnreadable, TraceUnreadable
from pytest_ldos.base.files import PlainReader, RecordFormat, write_atomically
from pytest_ldos.campaign.cells import Cell, Grid, Outline, estimate_s, running_order
from pytest_ldos.campaign.starts import (
    CampaignObserver,
    Store,
    append_start,
    arm_ended,
    motions_of,
    plain_trials,
    with_lost_motion,
)
from pytest_ldos.host.availability import Availability
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.decide import judge_alone, load_faults, measurement_faults
from pytest_ldos.judge.gate.reasons import Describe
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.load.protocol import load_available
from pytest_ldos.measure.trial.artifacts import decode_trials, new_folder
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.robot.stack.choose import stack_available
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.words import WhenUnavailable

_FOLDER: Final = "sweeps"
_DEFINITION_FILE: Final = "sweep.json"
_OF_SWEEP: Final = {"kind": "pytest-ldos sweep", "schema": 1}
_AGAIN: Final = "delete it: it is measured again"
_START: Final = RecordFormat("pytest-ldos sweep start", 1, remedy=_AGAIN, again=_AGAIN)

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,+@=-]{0,180}")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.,+@=-]+")


class CellState(StrEnum):
    """State of a start or a cell, from best to worst; `BROKEN` if the arm could not continue (`arm_ended`)."""

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
        start: number of the start within the cell, from 0.
        reason: reason why it was not measured, or its trials are invalid or fewer than planned; empty otherwise.
        began_ns, ended_ns: begin and end of the machine's reservation, Unix time.
        verdict, message: verdict and failure message of the cell's test; empty if the cell is not a test.
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


Records = Mapping[tuple[str, int], StartRecord]
"""Records by cell and start."""


def encode_start(record: StartRecord) -> str:
    return _START.encode({**vars(record), "trials": None if record.trials is None else plain_trials(record.trials)})


def decode_start(text: str, path: Path) -> StartRecord:
    """Decodes a record; raises `RecordUnreadable` as `RecordFormat.decode`."""
    reader = PlainReader({TrialSet: lambda trials, _: decode_trials(json.dumps(trials), path)})
    record: StartRecord = _START.decode(text, path, lambda values: reader.read(StartRecord, values, "the record"))
    return record


@dataclass(frozen=True, kw_only=True)
class CellResult:
    cell: Cell
    records: tuple[StartRecord, ...]
    planned: int

    @property
    def state(self) -> CellState | None:
        """The worst state of the starts; ``None`` if there are none yet."""
        return max((record.state for record in self.records), key=list(CellState).index, default=None)

    @property
    def reasons(self) -> tuple[str, ...]:
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
        return tuple(failed for of_start in found for failed in of_start)

    @property
    def _sets(self) -> list[TrialSet]:
        trusted = [record for record in self.records if record.state in TRUSTED]
        return [record.trials for record in trusted or self.records if record.trials is not None]


def collect(cells: Iterable[Cell], records: Records, starts: int) -> list[CellResult]:
    """The results of all cells, in the order of the grid; starts beyond the planned ones are ignored."""
    found = []
    for cell in cells:
        mine = (records.get((cell.name, start)) for start in range(starts))
        found.append(CellResult(cell=cell, records=tuple(each for each in mine if each is not None), planned=starts))
    return found


@dataclass(frozen=True)
class SweepKey:
    """Identity of a sweep: its name, the digest of its definition, and version and machine (`version_here`)."""

    name: str
    digest: str
    version: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Definition:
    """Definition of a sweep; paths below `root`, the project's, count as equal on each machine."""

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
        """Key with a digest of the definition, without the number of starts per cell."""
        text = json.dumps(self.to_plain(), sort_keys=True)
        plain = text.replace(self.root, ".") if self.root else text
        return SweepKey(self.name, hashlib.sha256(plain.encode()).hexdigest()[:12], self.version)

    def to_plain(self) -> dict[str, Any]:
        cells = {cell.name: dict(cell.assignments) for cell in self.grid.outline.cells}
        base = self.grid.base
        spec = {**asdict(base), "loads": {load.KIND: asdict(load) for load in base.loads}}
        return {"axes": list(self.grid.outline.addresses), "cells": cells, "scenario": spec}


def name_for(text: str) -> str:
    """A valid name of a sweep for a text, such as a test's name."""
    return _UNSAFE.sub("_", text).lstrip(".,+@=-")[-180:].lstrip(".,+@=-") or "sweep"


@dataclass(frozen=True)
class SweepFolder:
    path: Path

    @property
    def starts(self) -> Store[StartRecord]:
        return Store(self.path / "cells", decode_start, encode_start)

    def keep(self, record: StartRecord) -> None:
        self.starts.keep(record, f"{record.cell}.{record.start + 1}")

    def records(self, *, skip_damaged: bool = False) -> Records:
        """All records; damaged ones count as not measured if they are skipped, else it raises as `Store.read`."""
        found = []
        for file in self.starts.files():
            with suppress(*[RecordUnreadable] if skip_damaged else []):
                found.append(self.starts.read(file))
        return {(each.cell, each.start): each for each in found}

    def key(self) -> SweepKey | None:
        """The key of the sweep; ``None`` if it cannot be read."""
        if not (document := self._definition()):
            return None
        return SweepKey(str(document.get("name")), str(document.get("digest")), document.get("version", {}))

    def outline(self) -> Outline:
        """Outline of the cells; raises `RecordUnreadable` if the definition is damaged."""
        document = self._definition()
        try:
            return Outline.of(document["scenario"]["name"], document["axes"], document["cells"])
        except (AttributeError, KeyError, TypeError, ValueError):
            file = self.path / _DEFINITION_FILE
            raise RecordUnreadable(f"{file} is damaged", remedy="delete its folder") from None

    def _definition(self) -> dict[str, Any]:
        try:
            document = json.loads((self.path / _DEFINITION_FILE).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return document if isinstance(document, dict) and document.items() >= _OF_SWEEP.items() else {}


def find_sweep(output: Path, key: SweepKey) -> SweepFolder | None:
    """The newest folder of a sweep with the same definition and version."""
    return next((each for each in all_sweeps(output, key.name) if each.key() == key), None)


def all_sweeps(output: Path, name: str = "*") -> list[SweepFolder]:
    """The folders of all sweeps, or of those with a name; the newest first."""
    found = (output / _FOLDER).glob(f"{name if name == '*' else escape(name)}/*/{_DEFINITION_FILE}")
    return [SweepFolder(file.parent) for file in sorted(found, key=lambda file: file.parent.name, reverse=True)]


def new_sweep(output: Path, key: SweepKey, definition: Mapping[str, Any]) -> SweepFolder:
    now = datetime.now(UTC)
    path = new_folder(output, f"{_FOLDER}/{key.name}/{now:%Y%m%d-%H%M%S-%f}-{key.digest}")
    document = {**_OF_SWEEP, **asdict(key), "made_at": now.isoformat(timespec="seconds"), **definition}
    write_atomically(path / _DEFINITION_FILE, json.dumps(document, indent=1, allow_nan=False) + "\n")
    return SweepFolder(path)


def open_sweep(output: Path, definition: Definition, *, fresh: bool) -> tuple[SweepFolder, bool]:
    """The folder to resume in and True, or a new folder and False; resumes the same definition unless `fresh`."""
    found = None if fresh else find_sweep(output, definition.key)
    return (found, True) if found is not None else (new_sweep(output, definition.key, definition.to_plain()), False)


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """Plan of a sweep; `retry` repeats starts that were not measured or are invalid."""

    grid: Grid
    starts: int = 1
    retry: bool = False

    def __post_init__(self) -> None:
        if self.starts < 1:
            raise ConfigurationError(f"{self.starts} starts of a cell measure nothing", remedy="ask for at least one")

    @property
    def estimate_s(self) -> float:
        return self.starts * sum(map(estimate_s, self.grid.specs.values()))

    def left(self, records: Records) -> list[tuple[str, int]]:
        """Remaining cells and starts, in order."""
        left = []
        for each in running_order(self.grid, self.starts):
            found = records.get(each)
            if found is None or (self.retry and found.state not in TRUSTED):
                left.append(each)
        return left

    def refuse_endless(self, *, longest_s: float) -> None:
        """Raises `ConfigurationError` if the sweep would take too long; the message has the estimate."""
        if self.estimate_s > longest_s:
            raise ConfigurationError(
                f"{self.grid.size} cells × {self.starts} starts would take about {self.estimate_s / 3600:.0f} hours; "
                f"up to {longest_s / 3600:.0f} are allowed",
                remedy="give fewer values, trials or starts, or allow it: --max-hours",
            )


@dataclass(frozen=True)
class Sweeper:
    """Measures cells according to a plan.

    Attributes:
        measure: returns the trials of one stack start, by scenario and number of the start.
        available: checks if a scenario can be measured here; called before its stack is started.
        done: called with the starts so far of a cell after each, once it is on disk.
    """

    plan: SweepPlan
    folder: SweepFolder
    measure: Callable[[ScenarioSpec, int], TrialSet]
    observer: CampaignObserver
    describe: Describe
    available: Callable[[ScenarioSpec], Availability] = lambda spec: Availability(True)
    done: Callable[[CellResult], None] = lambda result: None

    def run(self) -> list[CellResult]:
        """Measures and returns all cells. Earlier results are reused, unless they are damaged or to be retried.

        Raises `MachineBusy` if another session uses the machine; earlier results are kept.
        """
        self.folder.starts.recover(self.observer)
        records = dict(self.folder.records())
        cells = {cell.name: cell for cell in self.plan.grid.outline.cells}
        left = self.plan.left(records)
        for number, (name, start) in enumerate(left):
            self.observer.expect(sum(motions_of(self.plan.grid.specs[each]) for each, _ in left[number:]))
            again = f", start {start + 1}" if self.plan.starts > 1 else ""
            self.observer.doing(f"{number + 1} of {len(left)}: {cells[name].label}{again}")
            record = self._measure(self.plan.grid.specs[name], start)
            self.folder.keep(record)
            records[name, start] = record
            self.done(*collect([cells[name]], records, self.plan.starts))
        return collect(cells.values(), records, self.plan.starts)

    def _measure(self, spec: ScenarioSpec, start: int) -> StartRecord:
        record = partial(StartRecord, cell=spec.name, start=start, began_ns=time.time_ns(), host=platform.node())
        able = self.available(spec)
        if not able.ok:
            state = CellState.SKIPPED if spec.unavailable is WhenUnavailable.SKIP else CellState.INFRA
            reason = f"{able.reason} → {able.remedy}" if able.remedy else able.reason
            return record(state=state, reason=reason, ended_ns=time.time_ns())
        try:
            trials = self.measure(spec, start)
        except MachineBusy:
            raise
        except LdosError as error:
            state = CellState.INVALID if isinstance(error, TraceUnreadable) else CellState.INFRA
            return record(state=state, reason=error.summary, ended_ns=time.time_ns())
        state, reason = state_of(trials, self.describe)
        return record(state=state, reason=reason, trials=trials, ended_ns=time.time_ns())


def can_be_measured(spec: ScenarioSpec) -> Availability:
    stack = stack_available(spec.stack)
    loads = ((load.KIND, load_available(load, spec.stack)) for load in spec.loads)
    absent = ((kind, each) for kind, each in (("the stack", stack), *loads) if not each.ok)
    kind, found = next(absent, ("", stack))
    return Availability(False, f"{kind} cannot be had here: {found.reason}", found.remedy) if kind else found


def state_of(trials: TrialSet, describe: Describe) -> tuple[CellState, str]:
    """State of a start by its trials, with the reason if it is not as planned.

    Failed goals are a result, and so is an arm that cannot continue under its loads.
    """
    policy = Policy(metrics=[metric.name for metric in trials.metrics])
    if arm_ended(trials):
        faults = measurement_faults(trials, policy) if trials.trials else load_faults(trials)
        words = f"the arm could not go on: {trials.incomplete}"
        return (CellState.INVALID, "; ".join(map(describe, faults))) if faults else (CellState.BROKEN, words)
    own = judge_alone(trials, policy)
    if own.verdict is Verdict.INVALID:
        return CellState.INVALID, "; ".join(map(describe, own.reasons))
    return CellState.MEASURED, f"not finished: {trials.incomplete}" if trials.incomplete else ""
