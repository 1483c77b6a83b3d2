"""Sweeps in tests: cells become tests, and what comes of them is kept where the session runs.

What a cell gave travels with the report of its teardown, so that workers of pytest-xdist, on this machine or another,
give it to the one who writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pytest

from pytest_ldos.base.errors import LdosError, NotWritten
from pytest_ldos.plugin.ledger import Ledger
from pytest_ldos.plugin.machine import is_worker
from pytest_ldos.plugin.marks import (
    CELL_ATTRIBUTE,
    CELL_FIXTURE,
    MEASURING_FIXTURE,
    SCENARIO_FIXTURE,
    SWEEP_ATTRIBUTE,
    SWEEP_MARK,
)
from pytest_ldos.plugin.messages import collect_error, end_session, fail_with, skip_with, usage_error, write_line
from pytest_ldos.plugin.run_record import RunRecord
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.plugin.sweep_cells import SweepCell, cell_of, cells_of, in_cell, in_running_order

if TYPE_CHECKING:
    from pytest_ldos.plugin.sweep_results import SweepResults
    from pytest_ldos.scenario.model import ScenarioSpec

_WORKER_INPUT: Final = "ldos_sweeps"
"""What workers are told: cells that are done, as JSON."""


class Sweeps:
    """The sweeps of one session.

    Attributes:
        is_kept: false if the result of a cell could not be written.
    """

    _REPORTS: ClassVar[pytest.StashKey[list[pytest.TestReport]]] = pytest.StashKey()
    _REPEATED: ClassVar[pytest.StashKey[bool]] = pytest.StashKey()

    def __init__(self, settings: Settings, record: RunRecord, ledger: Ledger) -> None:
        self._settings = settings
        self._record = record
        self._ledger = ledger
        self.is_kept = True
        self._results: SweepResults | None = None

    @property
    def results(self) -> SweepResults:
        """What is kept; made when a cell first asks."""
        if self._results is None:
            from pytest_ldos.plugin.sweep_results import SweepResults

            self._results = SweepResults(self._settings, self._record, self._ledger)
        return self._results

    # --- cells become tests -----------------------------------------------------------

    def make_cells(self, metafunc: pytest.Metafunc) -> None:
        """One test a cell."""
        marks = list(metafunc.definition.iter_markers(SWEEP_MARK))[::-1]
        if not marks:
            return
        if MEASURING_FIXTURE not in metafunc.fixturenames:
            raise collect_error(
                f"{metafunc.definition.nodeid} is swept but measures no stack\n  → let it use panda_stack or ldos_stack"
            )
        if CELL_FIXTURE not in metafunc.fixturenames:
            metafunc.fixturenames.append(CELL_FIXTURE)
        try:
            cells = cells_of(marks, self._scenario_of(metafunc))
        except LdosError as error:
            raise collect_error(f"{metafunc.definition.nodeid}: {error}") from None
        metafunc.parametrize(CELL_FIXTURE, cells, ids=[cell.id for cell in cells], indirect=True)

    def _scenario_of(self, metafunc: pytest.Metafunc) -> ScenarioSpec:
        """What is swept; of a test that is made for several scenarios, what these have in common."""
        if SCENARIO_FIXTURE not in metafunc.fixturenames:
            return self._settings.scenario_of(metafunc.definition)
        from pytest_ldos.scenario.loads.registry import LOAD_SPECS
        from pytest_ldos.scenario.model import ScenarioSpec

        return ScenarioSpec(name="any", loads=tuple(each() for each in LOAD_SPECS.values()))

    def put_in_order(self, items: list[pytest.Item]) -> None:
        """What a cell cannot have is refused before any is measured; then they are put in order."""
        for item in (each for each in items if cell_of(each) is not None):
            try:
                in_cell(item, self._settings.scenario_of(item))
            except LdosError as error:
                raise usage_error(f"{item.nodeid}: {error}") from None
        items[:] = in_running_order(items)

    # --- what was measured before -----------------------------------------------------

    def tell_worker(self, node: Any) -> None:
        """Tells a worker of pytest-xdist which cells are done."""
        if self._settings.value("resume"):
            node.workerinput[_WORKER_INPUT] = json.dumps(self.results.done)

    def repeat(self, item: pytest.Item) -> None:
        """A cell that is done is not measured again, unless it could not be; that it failed is said again."""
        cell = cell_of(item)
        if cell is None or not self._settings.value("resume"):
            return
        found = self.results.outcome(item, cell, self._done_by_controller())
        if found is None:
            return
        item.stash[self._REPEATED] = True
        if found.message:
            from pytest_ldos.judge.gate.verdict import Verdict

            if found.verdict:
                self._ledger.enter_verdict(item.nodeid, Verdict(found.verdict))
            fail_with(f"{found.message}\n(measured before: not measured again)")
        skip_with(f"measured before: {found.worth}")

    def _done_by_controller(self) -> Mapping[str, Any] | None:
        if not is_worker(self._settings.config):
            return None
        done: Mapping[str, Any] = json.loads(self._settings.config.workerinput.get(_WORKER_INPUT, "{}"))  # type: ignore[attr-defined]
        return done

    # --- what comes of a cell ---------------------------------------------------------

    def complete(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Gives the report of a cell what it gave."""
        cell = cell_of(item)
        if cell is None or item.nodeid in self._ledger.refusals:
            return
        if not item.stash.get(self._REPEATED, False):
            self._take(item, cell, report)
        elif report.when == "teardown":
            setattr(report, SWEEP_ATTRIBUTE, self.results.identify(item, cell))

    def _take(self, item: pytest.Item, cell: SweepCell, report: pytest.TestReport) -> None:
        """Gives the last report of a test what the test gave."""
        reports = item.stash.setdefault(self._REPORTS, [])
        reports.append(report)
        if report.when == "teardown":
            setattr(report, CELL_ATTRIBUTE, self.results.encode(item, cell, reports))

    def take(self, report: pytest.TestReport) -> None:
        """Keeps it, where the session runs: in workers nobody writes. Where it cannot be kept, the session ends: all
        that would be measured from then on would be lost, too.
        """
        if is_worker(self._settings.config):
            return
        part_of = getattr(report, SWEEP_ATTRIBUTE, None)
        if part_of is not None:
            self.results.recall(part_of)
        given = getattr(report, CELL_ATTRIBUTE, None)
        if given is not None:
            try:
                self._say(self.results.keep(report.nodeid, given))
            except NotWritten as error:
                self.is_kept = False
                end_session(f"ldos: {error}: --ldos-resume")

    def _say(self, line: str) -> None:
        reporter = self._settings.config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and reporter.verbosity >= 0:
            reporter.ensure_newline()
            write_line(reporter, line)

    def summarize(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._results is not None and not is_worker(self._settings.config):
            self._results.summarize(terminalreporter)
