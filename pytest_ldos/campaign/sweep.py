"""Measures the cells of a sweep; each start is on disk before the next begins."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pytest_ldos.base.errors import ConfigurationError, LdosError, MachineBusy, TraceUnreadable
from pytest_ldos.campaign.arm_failure import arm_ended
from pytest_ldos.campaign.cells import Cell, Grid, estimate_s, running_order
from pytest_ldos.campaign.sweep_folder import Definition, SweepFolder, find_sweep, new_sweep
from pytest_ldos.campaign.sweep_records import TRUSTED, CellResult, CellState, StartRecord, collect
from pytest_ldos.host.availability import Availability
from pytest_ldos.judge.gate.decide import judge_alone, load_faults, measurement_faults
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import Describe
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.load.choose import load_available
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.robot.stack.choose import stack_available
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.words import WhenUnavailable


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """Plan of a sweep.

    Attributes:
        starts: number of stack starts of each cell.
        retry: True if starts that were not measured, or cannot be trusted, are measured again.
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
        """Cells and starts that are still to be measured, in order."""
        order = running_order(self.grid, self.starts)
        return [each for each in order if (found := records.get(each)) is None or self._is_to_be_tried_again(found)]

    def _is_to_be_tried_again(self, record: StartRecord) -> bool:
        return self.retry and record.state not in TRUSTED

    def refuse_endless(self, *, longest_s: float) -> None:
        """Raises `ConfigurationError` if the sweep would take longer; the message says how long."""
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
        describe: words the reasons that records contain.
        available: returns whether a scenario can be measured here; called before its stack is started.
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
            RecordUnreadable: earlier results cannot be read, although they may be whole.
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

    Failed goals are a result, and so is an arm that cannot go on under its loads.
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
