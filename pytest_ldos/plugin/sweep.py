"""Sweeps in tests: a test for each cell, whose result is written by the session's main process.

The result of a cell is sent with the report of its teardown, so that pytest-xdist workers, on this machine or another,
send it to the main process.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from pytest_ldos.base.errors import LdosError, NotWritten
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.plugin import options
from pytest_ldos.plugin.messages import collect_error, end_session, fail_with, skip_with, usage_error, write_line
from pytest_ldos.plugin.runs import SessionParts
from pytest_ldos.plugin.settings import cell_of, cells_of, in_cell, in_running_order
from pytest_ldos.scenario.loads import LOAD_SPECS
from pytest_ldos.scenario.model import ScenarioSpec

if TYPE_CHECKING:
    from pytest_ldos.plugin.sweep_results import SweepResults


class Sweeps:
    """The sweeps of one session; not `is_kept` if the result of a cell could not be written."""

    _REPORTS: ClassVar[pytest.StashKey[list[pytest.TestReport]]] = pytest.StashKey()
    _RESULT: ClassVar[pytest.StashKey[str]] = pytest.StashKey()
    _WAS_DONE: ClassVar[pytest.StashKey[bool]] = pytest.StashKey()

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._settings, _, self._ledger = parts
        self.is_kept = True

    @cached_property
    def results(self) -> SweepResults:
        from pytest_ldos.plugin.sweep_results import SweepResults

        return SweepResults(self._parts)

    def make_cells(self, metafunc: pytest.Metafunc) -> None:
        """Makes one test for each cell; a test of several scenarios is swept over settings that they share."""
        if not (marks := list(metafunc.definition.iter_markers(options.SWEEP_MARK))[::-1]):
            return
        nodeid = metafunc.definition.nodeid
        if options.MEASURING_FIXTURE not in metafunc.fixturenames:
            raise collect_error(f"{nodeid} is swept but measures no stack\n  → let it use panda_stack or ldos_stack")
        if options.CELL_FIXTURE not in metafunc.fixturenames:
            metafunc.fixturenames.append(options.CELL_FIXTURE)
        try:
            if options.SCENARIO_FIXTURE in metafunc.fixturenames:
                scenario = ScenarioSpec(name="any", loads=tuple(each() for each in LOAD_SPECS.values()))
            else:
                scenario = self._settings.scenario_of(metafunc.definition)
            cells = cells_of(marks, scenario)
        except LdosError as error:
            raise collect_error(f"{nodeid}: {error}") from None
        metafunc.parametrize(options.CELL_FIXTURE, cells, ids=[cell.id for cell in cells], indirect=True)

    def put_in_order(self, items: list[pytest.Item]) -> None:
        """Puts cells in running order; refuses invalid ones before measuring."""
        for item in (each for each in items if cell_of(each) is not None):
            try:
                in_cell(item, self._settings.scenario_of(item))
            except LdosError as error:
                raise usage_error(f"{item.nodeid}: {error}") from None
        items[:] = in_running_order(items)

    def send_done(self, node: Any) -> None:
        if self._settings.value("resume"):
            node.workerinput[options.DONE_INPUT] = json.dumps(self.results.done)

    def skip_done(self, item: pytest.Item) -> None:
        """Skips a completed cell, or fails its test again with the same message."""
        cell = cell_of(item)
        if cell is None or not self._settings.value("resume"):
            return
        if (found := self.results.outcome(item, cell)) is None:
            return
        item.stash[self._WAS_DONE] = True
        if found.message:
            if found.verdict:
                self._ledger.enter_verdict(item.nodeid, Verdict(found.verdict))
            fail_with(f"{found.message}\n(measured before: not measured again)")
        skip_with(f"measured before: {found.summary}")

    def attach_result(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Attaches the result of a cell's first start to the last report of its test."""
        cell = cell_of(item)
        if cell is None or item.nodeid in self._ledger.refused:
            return
        reports = item.stash.setdefault(self._REPORTS, [])
        reports.append(report)
        if report.when == "teardown":
            if item.stash.get(self._WAS_DONE, False):
                result = self.results.identify(item, cell)
            else:
                result = item.stash.setdefault(self._RESULT, self.results.encode(item, cell, reports))
            setattr(report, options.CELL_ATTRIBUTE, result)

    def receive(self, report: pytest.TestReport) -> None:
        """Writes the result of a cell, except in workers.

        Ends the session if it cannot be written, because later results would also be lost.
        """
        result = getattr(report, options.CELL_ATTRIBUTE, None)
        if result is None or self._settings.is_worker:
            return
        try:
            line = self.results.keep(report.nodeid, result)
        except NotWritten as error:
            self.is_kept = False
            end_session(f"ldos: {error}: --ldos-resume")
        reporter = self._settings.config.pluginmanager.getplugin("terminalreporter")
        if line and reporter is not None and reporter.verbosity >= 0:
            reporter.ensure_newline()
            write_line(reporter, line)

    def summarize(self, terminalreporter: pytest.TerminalReporter) -> None:
        if "results" in vars(self) and not self._settings.is_worker:  # if there is a sweep
            self.results.summarize(terminalreporter)
