"""The hooks and fixtures that pytest finds: each calls one object and holds no state.

Every pytest run loads the imports of this module, even if it measures nothing; see `standby`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ldos.plugin import options
from pytest_ldos.plugin.standby import Standby, awake_session, session_of
from pytest_ldos.scenario.words import LOADS

if TYPE_CHECKING:
    from collections.abc import Generator

    from pytest_ldos.campaign.cells import Value
    from pytest_ldos.judge.gate.decide import GateResult
    from pytest_ldos.measure.load.protocol import RunningLoad
    from pytest_ldos.measure.trial.record import TrialSet
    from pytest_ldos.plugin.runs import ScenarioRun
    from pytest_ldos.plugin.scenario_test import Gate
    from pytest_ldos.plugin.studies import Launch, MeasuredStudy
    from pytest_ldos.scenario.model import StackSpec


def pytest_addoption(parser: pytest.Parser) -> None:
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(options)
    if "AMENT_PREFIX_PATH" in os.environ:  # of a sourced ROS 2
        options.leave_out_unloadable(pluginmanager)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, args: list[str]) -> None:
    options.refuse_unknown_flags(args)
    options.refuse_values_taken_for_the_root(early_config, os.environ)


def pytest_configure(config: pytest.Config) -> None:
    standby = Standby(config, os.environ)
    config.stash[Standby.KEY] = standby
    config.pluginmanager.register(standby, "ldos-standby")
    standby.begin()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    if (session := awake_session(node.config)) is not None:
        session.sweeps.send_done(node)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if options.measures(metafunc) or metafunc.definition.get_closest_marker(options.SWEEP_MARK) is not None:
        metafunc.config.stash[Standby.KEY].session_for(metafunc.definition.path).make_tests(metafunc)


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    return config.stash[Standby.KEY].header()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if (session := awake_session(item.config)) is not None:
        session.sweeps.skip_done(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    if (session := awake_session(item.config)) is None:
        return (yield)
    session.ledger.describe(item)
    report = yield
    if report.failed:
        session.ledger.failed.add(item.nodeid)
    session.sweeps.attach_result(item, report)
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if (measuring := awake_session(session.config)) is not None:
        session.exitstatus = measuring.finish(exitstatus, session.items)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if (session := awake_session(config)) is not None:
        session.summarize(terminalreporter)


def pytest_unconfigure(config: pytest.Config) -> None:
    if (session := awake_session(config)) is not None:
        session.machine.close()


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
    from pytest_ldos.plugin.settings import cell_of

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
    from pytest_ldos.plugin.studies import launch_for

    yield from launch_for(request)


@pytest.fixture(scope="module")
def module_ldos_launch(request: pytest.FixtureRequest) -> Iterator[Launch]:
    """`ldos_launch` for launch_pytest fixtures with ``scope="module"``."""
    from pytest_ldos.plugin.studies import launch_for

    yield from launch_for(request)
