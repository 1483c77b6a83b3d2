"""Recorded launch descriptions for launch_pytest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ldos.plugin.messages import add_section, named_faults, skip_with, warn_of
from pytest_ldos.plugin.selection import refuse_head
from pytest_ldos.plugin.standby import session_of

if TYPE_CHECKING:
    from pytest_ldos.launching.recorded import LaunchedProcess, RecordedLaunch
    from pytest_ldos.measure.trial.artifacts import ScenarioFolder
    from pytest_ldos.plugin.ledger import Ledger
    from pytest_ldos.plugin.settings import Settings
    from pytest_ldos.trace.ctf.read import DecodedTrace
    from pytest_ldos.trace.execution.model import ExecutionModel
    from pytest_ldos.trace.flow.graph import FlowGraph


class Launch:
    """Recorded launch descriptions and their recording; a fault ends the test with its message."""

    def __init__(self, recorded: RecordedLaunch) -> None:
        self._recorded = recorded

    def __call__(self, what: Any, arguments: Mapping[str, str] | None = None) -> Any:
        """A `LaunchDescription` whose processes are recorded.

        Args:
            what: a `LaunchDescription`, a list of actions, or the path of a launch file.
            arguments: for the launch file.
        """
        __tracebackhide__ = True
        with named_faults():
            return self._recorded.describe(what, arguments)

    @property
    def trace(self) -> DecodedTrace:
        """The trace so far; recording continues while processes run."""
        __tracebackhide__ = True
        with named_faults():
            return self._recorded.trace

    @property
    def model(self) -> ExecutionModel:
        """The execution model of the trace; built again for each call while processes run."""
        __tracebackhide__ = True
        with named_faults():
            return self._recorded.model

    @property
    def flow(self) -> FlowGraph:
        """The message flow of the model."""
        __tracebackhide__ = True
        with named_faults():
            return self._recorded.flow

    @property
    def processes(self) -> tuple[LaunchedProcess, ...]:
        """The processes that launch has started so far."""
        return self._recorded.processes


def launch_for(request: pytest.FixtureRequest) -> Iterator[Launch]:
    """Recorded launches, which end with their test or module."""
    from pytest_ldos.launching.available import launch_available
    from pytest_ldos.launching.recorded import RecordedLaunch
    from pytest_ldos.scenario.words import KeepTraces

    available = launch_available()
    if not available.ok:
        skip_with(f"{available.reason} → {available.remedy}")
    session, node = session_of(request.config), request.node
    with named_faults():
        refuse_head(session.settings, "ldos_launch records processes")
        folder = session.record.new_folder(node.name)
        recorded = RecordedLaunch(folder)
    if isinstance(node, pytest.Item) and session.settings.value("traces") is not KeepTraces.NONE:
        add_section(node, f"recorded: {folder.trace}")
        node.user_properties.append(("ldos.trace", str(folder.trace)))
    try:
        yield Launch(recorded)
    finally:
        try:
            recorded.close()
        finally:
            _tidy(session.settings, session.ledger, node.nodeid, folder)
    if recorded.survivors:
        left = f"launch left processes behind, which were ended: {', '.join(recorded.survivors)}"
        warn_of(left)


def _tidy(settings: Settings, ledger: Ledger, nodeid: str, folder: ScenarioFolder) -> None:
    """Keeps or deletes the recorded trace, according to the settings."""
    from pytest_ldos.measure.trial.artifacts import drop_folder, enforce_disk_limit
    from pytest_ldos.scenario.words import KeepTraces

    keep, run = settings.value("traces"), folder.path.parent
    if keep is not KeepTraces.ALL and not (keep is KeepTraces.FAILED and ledger.has_failed(nodeid)):
        drop_folder(folder)
    enforce_disk_limit(settings.output, limit_bytes=settings.traces_limit_bytes, keep=run)
