"""The fixtures; their implementations are loaded when a test first asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ldos.plugin.standby import session_of
from pytest_ldos.scenario.words import LOADS

if TYPE_CHECKING:
    from pytest_ldos.campaign.cells import Value
    from pytest_ldos.judge.gate.decide import GateResult
    from pytest_ldos.measure.load.protocol import RunningLoad
    from pytest_ldos.measure.trial.record import TrialSet
    from pytest_ldos.plugin.launching import Launch
    from pytest_ldos.plugin.scenario_run import ScenarioRun
    from pytest_ldos.plugin.scenario_test import Gate
    from pytest_ldos.plugin.studies import MeasuredStudy
    from pytest_ldos.scenario.model import StackSpec


@pytest.fixture
def ldos_stack_spec(request: pytest.FixtureRequest) -> StackSpec:
    """The stack under test, from the settings. Override it to measure a robot of your own."""
    return session_of(request.config).settings.sources.stack_spec()


@pytest.fixture
def panda_stack(ldos_stack: ScenarioRun) -> ScenarioRun:
    """`ldos_stack` with the Panda."""
    return ldos_stack


@pytest.fixture
def ldos_stack(request: pytest.FixtureRequest, ldos_stack_spec: StackSpec) -> Iterator[ScenarioRun]:
    """The stack under test. `ldos_trials` starts it for each block of trials, recorded from before its start."""
    from pytest_ldos.plugin.scenario_test import open_scenario_run

    yield from open_scenario_run(request, ldos_stack_spec)


@pytest.fixture
def ldos_loads(request: pytest.FixtureRequest, ldos_stack: ScenarioRun) -> Callable[..., AbstractContextManager[Any]]:
    """All loads of the scenario: ``with ldos_loads() as loads:`` returns them by kind; they run during trials."""
    from pytest_ldos.plugin.scenario_test import all_loads

    return all_loads(request.node, ldos_stack)


def _load_fixture(kind: str, text: str) -> Any:
    """A fixture for one load; settings default to the scenario's."""

    def load(
        request: pytest.FixtureRequest, ldos_stack: ScenarioRun
    ) -> Callable[..., AbstractContextManager[RunningLoad]]:
        from pytest_ldos.plugin.scenario_test import one_load

        return one_load(kind, request.node, ldos_stack)

    load.__doc__ = text
    return pytest.fixture(name=kind)(load)


globals().update({kind: _load_fixture(kind, text) for kind, text in LOADS.items()})


@pytest.fixture
def ldos_trials(request: pytest.FixtureRequest) -> Callable[..., TrialSet]:
    """Makes trials: ``trials = ldos_trials(ldos_stack, goals="reach", n=10)``.

    `goals` is the name of one of the stack's goal sets or a sequence of `Goal`, by default the scenario's;
    `n` defaults to ``--ldos-trials``. With ``--ldos-base``, they are interleaved with as many trials of the base.
    """
    from pytest_ldos.plugin.scenario_test import trial_maker

    return trial_maker(request)


@pytest.fixture
def ldos_gate(request: pytest.FixtureRequest, ldos_stack: ScenarioRun) -> Gate:
    """Judges trials: ``ldos_gate.check(trials)`` fails the test according to the verdict."""
    from pytest_ldos.plugin.scenario_test import Gate

    session = session_of(request.config)
    return Gate(session.settings, session.ledger, ldos_stack)


@pytest.fixture
def ldos_scenario(
    request: pytest.FixtureRequest,
    ldos_stack: ScenarioRun,
    ldos_loads: Callable[..., AbstractContextManager[Any]],
    ldos_trials: Callable[..., TrialSet],
    ldos_gate: Gate,
) -> Callable[[], GateResult]:
    """Runs a whole scenario, with its loads, trials and verdict: ``ldos_scenario()``.

    A test that requests it becomes a test for each scenario, marked with its name.
    """

    def measure() -> GateResult:
        with ldos_loads():
            trials = ldos_trials(ldos_stack)
        return ldos_gate.check(trials)

    return measure


@pytest.fixture
def ldos_cell(request: pytest.FixtureRequest) -> Mapping[str, Value]:
    """Values of the cell measured by a test of a sweep, by address."""
    from pytest_ldos.plugin.scenarios import cell_of

    cell = cell_of(request.node)
    return {} if cell is None else cell.assignments


@pytest.fixture
def ldos_study(request: pytest.FixtureRequest) -> MeasuredStudy:
    """The results of the instrument in the test's mark; ``ldos_study.check()`` judges them."""
    from pytest_ldos.plugin.studies import measured_study_for

    return measured_study_for(request)


@pytest.fixture
def ldos_launch(request: pytest.FixtureRequest) -> Iterator[Launch]:
    """Records the processes launched by a launch_pytest fixture.

    ``return ldos_launch([Node(…), …])`` in the fixture; ``ldos_launch.model`` in the test.
    """
    from pytest_ldos.plugin.launching import launch_for

    yield from launch_for(request)


@pytest.fixture(scope="module")
def module_ldos_launch(request: pytest.FixtureRequest) -> Iterator[Launch]:
    """`ldos_launch` for launch_pytest fixtures with ``scope="module"``."""
    from pytest_ldos.plugin.launching import launch_for

    yield from launch_for(request)
