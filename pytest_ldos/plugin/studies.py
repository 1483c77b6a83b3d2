"""Instruments in tests: ``@pytest.mark.ldos_latency(…)`` and the fixture `ldos_study`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError, Unavailable
from pytest_ldos.plugin.instrument_marks import instrument_mark, study_name
from pytest_ldos.plugin.messages import fail_with
from pytest_ldos.plugin.scenario_run import ScenarioRun
from pytest_ldos.plugin.selection import refuse_head
from pytest_ldos.plugin.standby import session_of
from pytest_ldos.scenario.settings import OWN_NAME

if TYPE_CHECKING:
    from pytest_ldos.instruments.instrument import Instrument
    from pytest_ldos.instruments.study import Study
    from pytest_ldos.judge.gate.decide import GateResult
    from pytest_ldos.measure.trial.record import TrialSet
    from pytest_ldos.plugin.scenario_test import Gate

FEWEST_ROUNDS: Final = 4
"""Fewest rounds of each case to estimate its noise."""


class MeasuredStudy:
    """The results of an instrument in a test.

    Attributes:
        study: results as shown.
        trials: rounds as judged.
    """

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


class _Progress:
    """Reports each step on a line; see `instruments.instrument.Progress`."""

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


def measured_study_for(request: pytest.FixtureRequest) -> MeasuredStudy:
    """Measures with the instrument of a test's mark."""
    session, item = session_of(request.config), request.node
    instrument, spec, name = _requested(item)
    try:
        session.record.refuse_shared(name, item.nodeid)
        refuse_head(session.settings, "an instrument measures programs")
        return _measure(request, instrument, spec, name)
    except LdosError as error:
        if not isinstance(error, ConfigurationError):
            session.ledger.enter_infra(item.nodeid, instrument.name, error)
        fail_with(f"'{instrument.name}': {error}")


def _require_rounds(trials: TrialSet) -> None:
    """Raises `ConfigurationError` if a case has too few rounds."""
    for case, rounds in Counter(each.goal for each in trials.trials).items():
        if rounds < FEWEST_ROUNDS:
            raise ConfigurationError(
                f"{rounds} rounds of {case!r} cannot be judged; have {FEWEST_ROUNDS} or more of each case",
                remedy="raise the mark's rounds, or starts",
            )


def _requested(item: pytest.Item) -> tuple[Instrument, Any, str]:
    """The instrument of a test, its settings, and the name of its baseline."""
    from pytest_ldos.campaign.instruments import find_instrument
    from pytest_ldos.scenario.fields import build_spec

    try:
        name, mark = instrument_mark(item)
        if mark.args:
            fail_with(f"{mark.name} takes settings by name: {mark.name}({name}=…)")
        instrument = find_instrument(name)
        settings = {key: value for key, value in mark.kwargs.items() if key != OWN_NAME}
        return instrument, build_spec(instrument.spec, settings, f"of {mark.name}:"), study_name(item)
    except ConfigurationError as error:
        fail_with(str(error))


def _measure(request: pytest.FixtureRequest, instrument: Instrument, spec: Any, name: str) -> MeasuredStudy:
    from pytest_ldos.campaign.studies import to_trials
    from pytest_ldos.campaign.watching import FOLDER
    from pytest_ldos.measure.trial.artifacts import write_trials
    from pytest_ldos.plugin.scenario_test import Gate
    from pytest_ldos.plugin.watching import measured_study

    session, item = session_of(request.config), request.node
    record = session.record
    progress = _Progress(request.config, instrument.name)
    able = instrument.available(spec)
    if not able.ok:
        raise Unavailable(f"cannot measure: {able.reason}", remedy=able.remedy)
    with session.holding_machine(item, progress.announce):
        study = measured_study(
            session.settings.watch_spec,
            lambda: record.new_folder(f"{instrument.name}-{FOLDER}").path,
            lambda: instrument.measure(spec, progress),
        )
    trials = to_trials(study, name=name)
    folder = record.new_folder(name)
    write_trials(folder, trials)
    _require_rounds(trials)
    run = ScenarioRun(item.nodeid, trials.spec, folder)
    run.add_trials(trials)
    record.runs.append(run)
    return MeasuredStudy(study, trials, Gate(session.settings, session.ledger, run))
