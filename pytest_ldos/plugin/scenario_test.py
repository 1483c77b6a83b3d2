"""What a scenario test asks for: a stack, loads, trials and the gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.plugin.messages import fail_with
from pytest_ldos.plugin.progress import Progress
from pytest_ldos.plugin.scenarios import require_loads
from pytest_ldos.plugin.session import MeasuringSession, ScenarioRun
from pytest_ldos.plugin.standby import session_of
from pytest_ldos.scenario.fields import revise_spec
from pytest_ldos.scenario.loads.registry import LOAD_SPECS
from pytest_ldos.scenario.loads.spec import LoadSpec
from pytest_ldos.scenario.model import StackSpec

if TYPE_CHECKING:
    from pytest_ldos.judge.gate.decide import GateResult
    from pytest_ldos.measure.load.protocol import RunningLoad
    from pytest_ldos.measure.trial.record import TrialSet

_RUN: pytest.StashKey[ScenarioRun] = pytest.StashKey()


def running_stack(request: pytest.FixtureRequest, stack: StackSpec) -> Iterator[ScenarioRun]:
    """A recorded stack for a test; ends with it."""
    session = session_of(request.config)
    item = request.node
    announce = Progress(request.config).announce
    try:
        with session.open_scenario(item, stack, announce=announce) as run:
            item.stash[_RUN] = run
            yield run
    except LdosError as error:
        _end_as_infra(session, item, error)


def all_loads(request: pytest.FixtureRequest, run: ScenarioRun) -> Callable[..., AbstractContextManager[Any]]:
    """What applies all loads of a scenario at once."""

    @contextmanager
    def apply() -> Iterator[dict[str, Any]]:
        with ExitStack() as resources:
            yield {spec.KIND: resources.enter_context(_applied(request, run, spec)) for spec in run.spec.loads}

    return apply


def one_load(
    kind: str, request: pytest.FixtureRequest, run: ScenarioRun
) -> Callable[..., AbstractContextManager[RunningLoad]]:
    """What applies one load: what its call does not say is as the scenario has it."""

    def apply(**settings: Any) -> AbstractContextManager[RunningLoad]:
        with _named_faults(session_of(request.config), request.node):
            spec = revise_spec(run.spec.load(kind) or LOAD_SPECS[kind](), settings, kind)
        return _applied(request, run, spec)

    return apply


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


def trial_maker(request: pytest.FixtureRequest) -> Callable[..., TrialSet]:
    """What makes trials of a running stack, and keeps them until a gate has seen them."""
    from pytest_ldos.measure.metrics.catalogue import catalogue_of
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
        from pytest_ldos.judge.gate.verdict import is_failure
        from pytest_ldos.plugin.judging import judge
        from pytest_ldos.show.report import failure
        from pytest_ldos.show.report.compose import compose

        if trials in self._run.unjudged:
            self._run.unjudged.remove(trials)
        result, section = judge(self._session, self._run, trials)
        self._run.results.append(result)
        self._run.judged.append((trials, result.verdict))
        document = compose([section])
        self._session.note_section(self._item.nodeid, section, result.verdict)
        if is_failure(result.verdict, strict=self._session.is_strict):
            fail_with(failure.render(document))
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
