"""Instruments in tests: ``@pytest.mark.ldos_latency(…)`` and the fixture `ldos_study`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_ldos.errors import ConfigurationError, LdosError, Unavailable
from pytest_ldos.plugin.faults import fail_with
from pytest_ldos.plugin.instrument_marks import instrument_mark, mark_name
from pytest_ldos.plugin.session import ScenarioRun, session_of

if TYPE_CHECKING:
    from pytest_ldos.gate.decide import GateResult
    from pytest_ldos.middleware.instrument import Instrument
    from pytest_ldos.middleware.study import Study
    from pytest_ldos.plugin.fixtures import Gate
    from pytest_ldos.trial.record import TrialSet


class MeasuredStudy:
    """What an instrument found in a test.

    Attributes:
        study: as it is shown.
        trials: its rounds, as they are gated.
    """

    def __init__(self, study: Study, trials: TrialSet, gate: Gate) -> None:
        self.study = study
        self.trials = trials
        self._gate = gate

    def check(self) -> GateResult:
        """The verdict against the stored baseline; see `Gate.check`. Limits that were not met fail the test, too."""
        result = self._gate.check(self.trials)
        if self.study.missed:
            fail_with(f"'{self.study.name}': the target was missed: {', '.join(self.study.missed)}")
        return result


class _Progress:
    """See `middleware.instrument.Progress`: a line for each step."""

    def __init__(self, config: pytest.Config, name: str) -> None:
        from pytest_ldos.plugin.progress import Progress

        self._shown = Progress(config)
        self._name = name

    def announce(self, what: str) -> None:
        self._shown.announce(what)

    def doing(self, what: str) -> None:
        self._shown.announce(f"{self._name}: {what}")

    def note(self, text: str) -> None:
        self._shown.announce(f"{self._name}: {text}")

    def expect(self, steps: int) -> None: ...

    def step(self, count: int = 1) -> None: ...


@pytest.fixture
def ldos_study(request: pytest.FixtureRequest) -> MeasuredStudy:
    """What the instrument of the test's mark found: ``ldos_study.check()`` judges it."""
    session, item = session_of(request.config), request.node
    instrument, spec = _asked(item)
    try:
        return _measure(request, instrument, spec)
    except LdosError as error:
        if not isinstance(error, ConfigurationError):
            session.note_infra(item.nodeid, instrument.name, error)
        fail_with(f"'{instrument.name}': {error}")


def _asked(item: pytest.Item) -> tuple[Instrument, Any]:
    """The instrument of a test and its settings."""
    from pytest_ldos.campaign.instruments import MODULES, find_instrument
    from pytest_ldos.scenario.fields import build_spec

    found = instrument_mark(item)
    if found is None:
        fail_with(f"{item.nodeid} measures nothing: mark it with one of: {', '.join(map(mark_name, MODULES))}")
    name, mark = found
    if mark.args:
        fail_with(f"{mark.name} takes settings by name: {mark.name}({name}=…)")
    instrument = find_instrument(name)
    try:
        return instrument, build_spec(instrument.spec, dict(mark.kwargs), f"of {mark.name}:")
    except ConfigurationError as error:
        fail_with(str(error))


def _measure(request: pytest.FixtureRequest, instrument: Instrument, spec: Any) -> MeasuredStudy:
    from pytest_ldos.campaign.study_trials import to_trials
    from pytest_ldos.campaign.watch_files import FOLDER
    from pytest_ldos.plugin.fixtures import Gate
    from pytest_ldos.plugin.watching import measured_study
    from pytest_ldos.trial.artifacts import new_scenario_folder, write_trials

    session, item = session_of(request.config), request.node
    progress = _Progress(request.config, instrument.name)
    able = instrument.available(spec)
    if not able.ok:
        raise Unavailable(f"cannot measure: {able.reason}", remedy=able.remedy)
    with session.holding_machine(item, progress.announce):
        study = measured_study(
            session.watch_spec,
            lambda: new_scenario_folder(session.run_folder(), f"{instrument.name}-{FOLDER}").path,
            lambda: instrument.measure(spec, progress),
        )
    trials = to_trials(study)
    folder = new_scenario_folder(session.run_folder(), study.name)
    write_trials(folder, trials)
    run = ScenarioRun(item.nodeid, trials.spec, folder, trial_sets=[trials], unjudged=[trials])
    session.runs.append(run)
    return MeasuredStudy(study, trials, Gate(session, item, run))
