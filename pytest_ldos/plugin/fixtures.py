"""What a scenario test asks for: a stack, loads, trials and the gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_ldos.errors import ConfigurationError, LdosError
from pytest_ldos.plugin.faults import fail_with
from pytest_ldos.plugin.scenarios import require_loads
from pytest_ldos.plugin.session import MeasuringSession, ScenarioRun, session_of

if TYPE_CHECKING:
    from pytest_ldos.gate.decide import GateResult
    from pytest_ldos.load.protocol import RunningLoad
    from pytest_ldos.scenario.loads import LoadSpec
    from pytest_ldos.scenario.model import StackSpec
    from pytest_ldos.trial.record import TrialSet

_RUN: pytest.StashKey[ScenarioRun] = pytest.StashKey()


@pytest.fixture
def ldos_stack_spec(request: pytest.FixtureRequest) -> StackSpec:
    """The stack under test, as settings have it. Override it to measure a robot of your own."""
    return session_of(request.config).sources.stack_spec()


@pytest.fixture
def panda_stack(ldos_stack: ScenarioRun) -> ScenarioRun:
    """`ldos_stack` where the robot is the Panda."""
    return ldos_stack


@pytest.fixture
def ldos_stack(request: pytest.FixtureRequest, ldos_stack_spec: StackSpec) -> Iterator[ScenarioRun]:
    """The running stack under test, recorded from before its start; ends with the test."""
    from pytest_ldos.plugin.progress import Progress

    session = session_of(request.config)
    item = request.node
    announce = Progress(request.config).announce
    try:
        with session.open_scenario(item, ldos_stack_spec, announce=announce) as run:
            item.stash[_RUN] = run
            yield run
    except LdosError as error:
        _end_as_infra(session, item, error)


@pytest.fixture
def ldos_loads(request: pytest.FixtureRequest, ldos_stack: ScenarioRun) -> Callable[..., AbstractContextManager[Any]]:
    """All loads of the scenario: ``with ldos_loads() as loads:`` gives what runs, by kind."""

    @contextmanager
    def apply() -> Iterator[dict[str, Any]]:
        with ExitStack() as resources:
            loads = ldos_stack.spec.loads
            yield {spec.KIND: resources.enter_context(_applied(request, ldos_stack, spec)) for spec in loads}

    return apply


def _load_fixture(kind: str, example: str) -> Any:
    """A fixture for one load: what a test does not say is as the scenario has it."""

    def load(
        request: pytest.FixtureRequest, ldos_stack: ScenarioRun
    ) -> Callable[..., AbstractContextManager[RunningLoad]]:
        from pytest_ldos.scenario.fields import revise_spec
        from pytest_ldos.scenario.loads import LOAD_SPECS

        def apply(**settings: Any) -> AbstractContextManager[RunningLoad]:
            with _named_faults(session_of(request.config), request.node):
                spec = revise_spec(ldos_stack.spec.load(kind) or LOAD_SPECS[kind](), settings, kind)
            return _applied(request, ldos_stack, spec)

        return apply

    load.__doc__ = example
    return pytest.fixture(name=kind)(load)


cpu_load = _load_fixture(
    "cpu_load", "stress-ng's CPU load beside the stack: ``with cpu_load(workers=2, percent=80) as load:``."
)
memory_load = _load_fixture("memory_load", "Memory written and read beside it: ``with memory_load(size_mb=512):``.")
cache_load = _load_fixture("cache_load", "The CPU's caches filled with other data: ``with cache_load(workers=1):``.")
io_load = _load_fixture("io_load", "Files written and synced: ``with io_load(workers=1):``.")
dds_flood = _load_fixture(
    "dds_flood", "A flood of messages on the stack's domain: ``with dds_flood(publishers=4, rate_hz=1000) as flood:``."
)
network_impairment = _load_fixture(
    "network_impairment", "Delay and loss of the domain's messages: ``with network_impairment(delay_ms=5):``."
)
cpu_limit = _load_fixture("cpu_limit", "The stack on few CPUs: ``with cpu_limit(cpus=1):``.")
guard = _load_fixture(
    "guard", "What throttles publishers while a path is late: ``with dds_flood(), guard() as guarded:``."
)
noisy_neighbour = _load_fixture("noisy_neighbour", "A second stack on another domain: ``with noisy_neighbour():``.")


@contextmanager
def _applied(request: pytest.FixtureRequest, run: ScenarioRun, spec: LoadSpec) -> Iterator[Any]:
    """A load, known to the run for as long as the context lasts."""
    with _named_faults(session_of(request.config), request.node):
        require_loads([spec], run.spec)
        with run.applied(spec) as running:
            run.loads.append(running)
            try:
                yield running
            finally:
                run.loads.remove(running)


@pytest.fixture
def ldos_trials(request: pytest.FixtureRequest) -> Callable[..., TrialSet]:
    """Makes trials: ``trials = ldos_trials(ldos_stack, goals="reach", n=10)``.

    `goals` is the name of one of the stack's goal sets or a sequence of `Goal`, by default the scenario's;
    `n` defaults to ``--ldos-trials``. With ``--ldos-base``, as many are made of the base in turns with these.
    """
    from pytest_ldos.metrics.catalogue import catalogue_of
    from pytest_ldos.plugin.measuring import measure

    session = session_of(request.config)

    def make(run: ScenarioRun, goals: Any = None, n: int | None = None) -> TrialSet:
        goals = run.spec.goals if goals is None else goals
        with _named_faults(session, request.node):
            catalogue = catalogue_of(session.own_metrics(request.node))
            trials = measure(session, run, goals if isinstance(goals, str) else tuple(goals), n, catalogue)
        run.trial_sets.append(trials)
        run.unjudged.append(trials)
        return trials

    return make


@pytest.fixture
def ldos_gate(request: pytest.FixtureRequest, ldos_stack: ScenarioRun) -> Gate:
    """Judges trials: ``ldos_gate.check(trials)`` fails the test by the verdict."""
    return Gate(session_of(request.config), request.node, ldos_stack)


@pytest.fixture
def ldos_scenario(
    request: pytest.FixtureRequest,
    ldos_stack: ScenarioRun,
    ldos_loads: Callable[..., AbstractContextManager[Any]],
    ldos_trials: Callable[..., TrialSet],
    ldos_gate: Gate,
) -> Callable[[], GateResult]:
    """All that a scenario says: its loads, its trials, its verdict; ``ldos_scenario()`` runs it.

    A test that asks for it becomes a test for each scenario, marked with its name.
    """

    def measure() -> GateResult:
        with ldos_loads():
            trials = ldos_trials(ldos_stack)
        return ldos_gate.check(trials)

    return measure


class Gate:
    """Judges trials for one test."""

    def __init__(self, session: MeasuringSession, item: pytest.Item, run: ScenarioRun) -> None:
        self._session = session
        self._item = item
        self._run = run

    def check(self, trials: TrialSet) -> GateResult:
        """The verdict on trials against their baseline, or against the base they took turns with.

        Without a baseline, this run's trials become the local one (unless the run is
        strict). The test fails when the trials regressed or could not be measured, and in
        a strict run also when nothing could be said.
        """
        from pytest_ldos.gate.verdict import is_failure
        from pytest_ldos.plugin.judging import judge
        from pytest_ldos.report import failure
        from pytest_ldos.report.compose import compose

        if trials in self._run.unjudged:
            self._run.unjudged.remove(trials)
        result, section = judge(self._session, self._run, trials)
        self._run.results.append(result)
        self._run.judged.append((trials, result.verdict))
        document = compose([section])
        self._session.note_section(self._item.nodeid, section, result.verdict)
        if is_failure(result.verdict, strict=self._session.is_strict):
            pytest.fail(failure.render(document), pytrace=False)
        return result


@contextmanager
def _named_faults(session: MeasuringSession, item: pytest.Item) -> Iterator[None]:
    """Faults that have a name end the test with their message, not with a traceback."""
    try:
        yield
    except LdosError as error:
        _end_as_infra(session, item, error)


def _end_as_infra(session: MeasuringSession, item: pytest.Item, error: LdosError) -> NoReturn:
    if isinstance(error, ConfigurationError):
        fail_with(str(error))
    run = item.stash.get(_RUN, None)
    scenario = run.spec.name if run else session.spec_of(item).name
    session.note_infra(item.nodeid, scenario, error)
    fail_with(f"scenario '{scenario}': infra\n{error}")
