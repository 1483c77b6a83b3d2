"""Fixtures of tests without a scenario: an instrument, or recorded launch descriptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError, Unavailable
from pytest_ldos.campaign.watching import FOLDER, measure_watched, to_trials
from pytest_ldos.instruments import find_instrument
from pytest_ldos.instruments.study import Instrument, Study
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.measure.trial.artifacts import drop_folder, write_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.plugin.ledger import refuse_head
from pytest_ldos.plugin.messages import add_section, fail_with, named_faults, skip_with, warn_of
from pytest_ldos.plugin.progress import Progress
from pytest_ldos.plugin.runs import ScenarioRun
from pytest_ldos.plugin.scenario_test import Gate
from pytest_ldos.plugin.settings import instrument_mark, study_name
from pytest_ldos.plugin.standby import session_of
from pytest_ldos.scenario.fields import build_spec
from pytest_ldos.scenario.settings import OWN_NAME
from pytest_ldos.scenario.words import KeepTraces
from pytest_ldos.show.report.flame import DRAWINGS
from pytest_ldos.trace.ctf.read import DecodedTrace
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import FlowGraph

if TYPE_CHECKING:
    from pytest_ldos.launching import LaunchedProcess, RecordedLaunch

FEWEST_ROUNDS: Final = 4
"""Fewest rounds of each case to estimate its noise."""


class MeasuredStudy:
    """The results of an instrument in a test, as shown (`study`) and as judged (`trials`)."""

    def __init__(self, study: Study, trials: TrialSet, gate: Gate) -> None:
        self.study = study
        self.trials = trials
        self._gate = gate

    def check(self) -> GateResult:
        """Judges by the stored baseline, as in `Gate.check`. A missed target also fails the test."""
        result = self._gate.check(self.trials)
        if self.study.missed:
            fail_with(f"'{self.study.name}': the target was missed: {', '.join(self.study.missed)}")
        return result


class _Progress(Progress):
    def __init__(self, config: pytest.Config, name: str) -> None:
        super().__init__(config)
        self._name = name

    def doing(self, what: str) -> None:
        self.announce(f"{self._name}: {what}")

    def note(self, text: str) -> None:
        self.doing(text)

    def expect(self, steps: int) -> None: ...

    def step(self, count: int = 1) -> None: ...


def measured_study_for(request: pytest.FixtureRequest) -> MeasuredStudy:
    session, item = session_of(request.config), request.node
    record, watch = session.record, session.settings.watch_spec
    instrument, spec, name = _requested(item)
    try:
        record.refuse_shared(name, item.nodeid)
        refuse_head(session.settings, "an instrument measures programs")
        able = instrument.available(spec)
        if not able.ok:
            raise Unavailable(f"cannot measure: {able.reason}", remedy=able.remedy)
        progress = _Progress(request.config, instrument.name)
        with session.holding_machine(item, progress.announce):
            if watch.is_asked:
                place = record.new_folder(f"{instrument.name}-{FOLDER}").path
                study = measure_watched(watch, place, DRAWINGS, lambda: instrument.measure(spec, progress))
            else:
                study = instrument.measure(spec, progress)
        trials = to_trials(study, name=name)
        folder = record.new_folder(name)
        write_trials(folder, trials)
        for case, rounds in Counter(each.goal for each in trials.trials).items():
            if rounds < FEWEST_ROUNDS:
                raise ConfigurationError(
                    f"{rounds} rounds of {case!r} cannot be judged; have {FEWEST_ROUNDS} or more of each case",
                    remedy="raise the mark's rounds, or starts",
                )
    except LdosError as error:
        if not isinstance(error, ConfigurationError):
            session.ledger.enter_infra(item.nodeid, instrument.name, error)
        fail_with(f"'{instrument.name}': {error}")
    run = ScenarioRun(item.nodeid, trials.spec, folder)
    run.add_trials(trials)
    record.runs.append(run)
    return MeasuredStudy(study, trials, Gate(session.settings, session.ledger, run))


def _requested(item: pytest.Item) -> tuple[Instrument, Any, str]:
    try:
        name, mark = instrument_mark(item)
        if mark.args:
            fail_with(f"{mark.name} takes settings by name: {mark.name}({name}=…)")
        instrument = find_instrument(name)
        settings = {key: value for key, value in mark.kwargs.items() if key != OWN_NAME}
        return instrument, build_spec(instrument.spec, settings, f"of {mark.name}:"), study_name(item)
    except ConfigurationError as error:
        fail_with(str(error))


class Launch:
    """Recorded launch descriptions and their recording; a fault ends the test with its message."""

    def __init__(self, recorded: RecordedLaunch) -> None:
        self._recorded = recorded

    @named_faults()
    def __call__(self, what: Any, arguments: Mapping[str, str] | None = None) -> Any:
        """A `LaunchDescription` whose processes are recorded.

        Args:
            what: a `LaunchDescription`, a list of actions, or the path of a launch file.
            arguments: for the launch file.
        """
        return self._recorded.describe(what, arguments)

    @property
    @named_faults()
    def trace(self) -> DecodedTrace:
        """The trace so far; recording continues while processes run."""
        return self._recorded.trace

    @property
    @named_faults()
    def model(self) -> ExecutionModel:
        """The execution model of the trace; built again for each call while processes run."""
        return self._recorded.model

    @property
    @named_faults()
    def flow(self) -> FlowGraph:
        """The message flow of the model."""
        return self._recorded.flow

    @property
    def processes(self) -> tuple[LaunchedProcess, ...]:
        """The processes that launch has started so far."""
        return self._recorded.processes


def launch_for(request: pytest.FixtureRequest) -> Iterator[Launch]:
    """Recorded launches, which end with their test or module."""
    from pytest_ldos.launching import RecordedLaunch, launch_available

    available = launch_available()
    if not available.ok:
        skip_with(f"{available.reason} → {available.remedy}")
    session, node = session_of(request.config), request.node
    settings, keep = session.settings, session.settings.value("traces")
    with named_faults():
        refuse_head(settings, "ldos_launch records processes")
        folder = session.record.new_folder(node.name)
        recorded = RecordedLaunch(folder)
    if isinstance(node, pytest.Item) and keep is not KeepTraces.NONE:
        add_section(node, f"recorded: {folder.trace}")
        node.user_properties.append(("ldos.trace", str(folder.trace)))
    try:
        with closing(recorded):
            yield Launch(recorded)
    finally:
        if keep is not KeepTraces.ALL and not (keep is KeepTraces.FAILED and session.ledger.has_failed(node.nodeid)):
            drop_folder(folder)
        settings.enforce_disk_limit(folder.path.parent)
    if recorded.survivors:
        warn_of(f"launch left processes behind, which were ended: {', '.join(recorded.survivors)}")
