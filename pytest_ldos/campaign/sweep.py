"""Measures the cells of a sweep; each start is on disk before the next begins.

``.ldos/sweeps/<name>/<time>-<digest>/`` holds ``sweep.json``, the definition, and ``cells/<cell>.<start>.json``. A
sweep resumes only in a folder with the same key (a digest of scenario and values, and the version and the machine),
so that cells of different definitions are never mixed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from glob import escape
from pathlib import Path
from typing import Any, Final, Protocol

from pytest_ldos.base.errors import ConfigurationError, LdosError, MachineBusy, RecordUnreadable, TraceUnreadable
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.campaign.cells import Cell, Grid, Outline, estimate_s, running_order
from pytest_ldos.campaign.criterion import arm_ended
from pytest_ldos.campaign.kept_documents import set_damaged_aside
from pytest_ldos.campaign.sweep_records import (
    TRUSTED,
    CellResult,
    CellState,
    StartRecord,
    collect,
    decode_start,
    encode_start,
)
from pytest_ldos.host.availability import Availability
from pytest_ldos.judge.gate.decide import judge_alone, load_faults, measurement_faults
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import Describe
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.load.choose import load_available
from pytest_ldos.measure.trial.artifacts import new_folder, resumable
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.robot.stack.choose import stack_available
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.words import WhenUnavailable

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
        version: identity of version and machine; see `campaign.measured_version`.
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
        """Key with a digest of the definition, without the number of starts per cell."""
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
            RecordUnreadable: a file is damaged; the message names it.
        """
        return _by_start(map(read_start, self.files()))

    def readable_records(self) -> dict[tuple[str, int], StartRecord]:
        """All undamaged records; damaged ones count as not measured."""
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


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """Plan of a sweep.

    Attributes:
        starts: number of stack starts of each cell.
        retry: True to repeat starts that were not measured or are invalid.
    """

    grid: Grid
    starts: int = 1
    retry: bool = False

    def __post_init__(self) -> None:
        if self.starts < 1:
            raise ConfigurationError(f"{self.starts} starts of a cell measure nothing", remedy="ask for at least one")

    @property
    def estimate_s(self) -> float:
        """Approximate duration of the whole sweep."""
        return self.starts * sum(map(estimate_s, self.grid.specs.values()))

    def left(self, records: Mapping[tuple[str, int], StartRecord]) -> list[tuple[str, int]]:
        """Remaining cells and starts, in order."""
        order = running_order(self.grid, self.starts)
        return [each for each in order if (found := records.get(each)) is None or self._is_to_be_tried_again(found)]

    def _is_to_be_tried_again(self, record: StartRecord) -> bool:
        return self.retry and record.state not in TRUSTED

    def refuse_endless(self, *, longest_s: float) -> None:
        """Raises `ConfigurationError` if the sweep would take too long; the message has the estimate."""
        if self.estimate_s > longest_s:
            raise ConfigurationError(
                f"{self.grid.size} cells × {self.starts} starts would take about {self.estimate_s / 3600:.0f} hours; "
                f"up to {longest_s / 3600:.0f} are allowed",
                remedy="give fewer values, trials or starts, or allow it: --max-hours",
            )


class SweepObserver(Protocol):
    """Observer of cells being measured."""

    def cell(self, cell: Cell, start: int, *, number: int, of: int) -> None:
        """A start of a cell begins: `number` (from 1) of the `of` starts that are left."""

    def cell_done(self, result: CellResult) -> None:
        """A start of a cell has ended, and is on disk."""

    def note(self, text: str) -> None:
        """A remark for the user."""


@dataclass(frozen=True)
class Sweeper:
    """Measures cells according to a plan.

    Attributes:
        measure: returns the trials of one stack start, by scenario and number of the start.
        describe: describes the reasons in records.
        available: checks if a scenario can be measured here; called before its stack is started.
        now_ns: Unix time.
    """

    plan: SweepPlan
    folder: SweepFolder
    measure: Callable[[ScenarioSpec, int], TrialSet]
    observer: SweepObserver
    describe: Describe
    available: Callable[[ScenarioSpec], Availability] = lambda spec: Availability(True)
    now_ns: Callable[[], int] = time.time_ns
    _records: dict[tuple[str, int], StartRecord] = field(default_factory=dict)

    def run(self) -> list[CellResult]:
        """Measures and returns all cells. Earlier results are reused, unless they are damaged or to be retried.

        Raises:
            RecordUnreadable: earlier results cannot be opened, although they may be intact.
            MachineBusy: another session uses the machine; earlier results are kept.
        """
        for damaged in self.folder.set_damaged_aside():
            self.observer.note(f"damaged, set aside and measured again: {damaged}")
        self._records.update(self.folder.records())
        cells = {cell.name: cell for cell in self.plan.grid.outline.cells}
        left = self.plan.left(self._records)
        for number, (name, start) in enumerate(left, start=1):
            self.observer.cell(cells[name], start, number=number, of=len(left))
            record = self._measure(self.plan.grid.specs[name], start)
            self.folder.keep(record)
            self._records[name, start] = record
            (result,) = collect([cells[name]], self._records, self.plan.starts)
            self.observer.cell_done(result)
        return collect(cells.values(), self._records, self.plan.starts)

    def _measure(self, spec: ScenarioSpec, start: int) -> StartRecord:
        began_ns = self.now_ns()

        def record(state: CellState, reason: str, trials: TrialSet | None = None) -> StartRecord:
            return StartRecord(
                cell=spec.name,
                start=start,
                state=state,
                reason=reason,
                trials=trials,
                began_ns=began_ns,
                ended_ns=self.now_ns(),
                host=platform.node(),
            )

        able = self.available(spec)
        if not able.ok:
            state = CellState.SKIPPED if spec.unavailable is WhenUnavailable.SKIP else CellState.INFRA
            return record(state, f"{able.reason} → {able.remedy}" if able.remedy else able.reason)
        try:
            trials = self.measure(spec, start)
        except MachineBusy:
            raise
        except LdosError as error:
            return record(state_of_fault(error), error.summary)
        return record(*state_of(trials, self.describe), trials)


def can_be_measured(spec: ScenarioSpec) -> Availability:
    """Checks that the stack and the loads of a scenario are present and permitted on this machine."""
    stack = stack_available(spec.stack)
    loads = ((load.KIND, load_available(load, spec.stack)) for load in spec.loads)
    absent = ((kind, each) for kind, each in (("the stack", stack), *loads) if not each.ok)
    kind, found = next(absent, ("", stack))
    return Availability(False, f"{kind} cannot be had here: {found.reason}", found.remedy) if kind else found


def state_of_fault(error: LdosError) -> CellState:
    """State of a start that ended with an error."""
    return CellState.INVALID if isinstance(error, TraceUnreadable) else CellState.INFRA


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


def open_sweep(output: Path, definition: Definition, *, fresh: bool) -> tuple[SweepFolder, bool]:
    """The folder to resume in and True, or a new folder and False; resumes the same definition unless `fresh`."""
    found = None if fresh else find_sweep(output, definition.key)
    return (found, True) if found is not None else (new_sweep(output, definition.key, definition.to_plain()), False)
