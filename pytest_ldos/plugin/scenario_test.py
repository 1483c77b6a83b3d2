"""The parts that a scenario test asks for: a stack, loads, trials and the gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.plugin.messages import fail_with
from pytest_ldos.plugin.preflight import require_goals_of
from pytest_ldos.plugin.progress import Progress
from pytest_ldos.plugin.scenario_run import ScenarioRun
from pytest_ldos.plugin.scenarios import require_loads
from pytest_ldos.plugin.selection import metrics_of
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.plugin.standby import session_of
from pytest_ldos.scenario.fields import revise_spec
from pytest_ldos.scenario.loads.registry import LOAD_SPECS
from pytest_ldos.scenario.loads.spec import LoadSpec
from pytest_ldos.scenario.model import StackSpec

if TYPE_CHECKING:
    from pytest_ldos.host.interference import Interference
    from pytest_ldos.judge.gate.decide import GateResult
    from pytest_ldos.measure.load.protocol import RunningLoad
    from pytest_ldos.measure.trial.record import TrialSet
    from pytest_ldos.plugin.ledger import Ledger

_RUN: pytest.StashKey[ScenarioRun] = pytest.StashKey()


def open_scenario_run(request: pytest.FixtureRequest, stack: StackSpec) -> Iterator[ScenarioRun]:
    """The run of a scenario test; ends with it."""
    session = session_of(request.config)
    item = request.node
    announce = Progress(request.config).announce
    try:
        with session.open_scenario(item, stack, announce=announce) as run:
            item.stash[_RUN] = run
            yield run
    except LdosError as error:
        _end_as_infra(item, error, stack)


def all_loads(item: pytest.Item, run: ScenarioRun) -> Callable[..., AbstractContextManager[Any]]:
    """A function that applies all loads of a scenario at once."""

    @contextmanager
    def apply() -> Iterator[dict[str, Any]]:
        with ExitStack() as resources:
            yield {spec.KIND: resources.enter_context(_applied(item, run, spec)) for spec in run.spec.loads}

    return apply


def one_load(kind: str, item: pytest.Item, run: ScenarioRun) -> Callable[..., AbstractContextManager[RunningLoad]]:
    """A function that applies one load; settings that its call does not give are the scenario's."""

    def apply(**settings: Any) -> AbstractContextManager[RunningLoad]:
        with _named_faults(item):
            spec = revise_spec(run.spec.load(kind) or LOAD_SPECS[kind](), settings, kind)
        return _applied(item, run, spec)

    return apply


@contextmanager
def _applied(item: pytest.Item, run: ScenarioRun, spec: LoadSpec) -> Iterator[Any]:
    """A load that each stack gets which starts while the context lasts."""
    from pytest_ldos.measure.load.repeated import RepeatedLoad

    with _named_faults(item):
        require_loads([spec], run.spec, run.environments)
        load = RepeatedLoad(spec)
        run.loads.append(load)
        try:
            yield load
        finally:
            run.loads.remove(load)


def trial_maker(request: pytest.FixtureRequest) -> Callable[..., TrialSet]:
    """A function that makes trials of a stack, and keeps them until a gate has seen them."""
    from pytest_ldos.plugin.measuring import TrialMaker

    session, item = session_of(request.config), request.node

    def make(run: ScenarioRun, goals: Any = None, n: int | None = None) -> TrialSet:
        session.ledger.refuse_after_failure(item.nodeid)
        goals = run.spec.goals if goals is None else goals
        with _named_faults(item):
            maker = TrialMaker(session.settings, session.ledger, run)
            catalogue = metrics_of(item, session.settings)
            require_goals_of(run.spec, goals)
            trials = maker.make(goals if isinstance(goals, str) else tuple(goals), n, catalogue)
        run.add_trials(trials)
        return trials

    return make


class Gate:
    """Judges the trials of one scenario run."""

    def __init__(self, settings: Settings, ledger: Ledger, run: ScenarioRun) -> None:
        self._settings = settings
        self._ledger = ledger
        self._run = run

    def check(self, trials: TrialSet) -> GateResult:
        """The verdict on trials compared with their baseline, or with the base that they were interleaved with.

        Without a baseline, this run's trials become the local one (unless the run is
        strict). The test fails if the trials regressed or could not be measured, and in
        a strict run also without a verdict. A test judges one set of trials, because a
        second one would have the same baseline and the same part of the error budget.
        """
        from pytest_ldos.judge.gate.verdict import is_failure
        from pytest_ldos.plugin.judging import judge_run
        from pytest_ldos.show.report import failure
        from pytest_ldos.show.report.compose import compose

        self._ledger.refuse_after_failure(self._run.nodeid)
        if self._run.judged:
            fail_with(
                f"scenario '{self._run.spec.name}' was judged already in this test, and other trials would have the "
                "same baseline: judge them in a test of its own, with a name of its own (name=… in its mark)"
            )
        if trials in self._run.unjudged:
            self._run.unjudged.remove(trials)
        result, section = judge_run(self._settings, self._ledger, self._run, trials)
        self._run.judged.append((trials, result))
        self._ledger.enter_section(self._run.nodeid, section, result.verdict)
        if is_failure(result.verdict, strict=self._settings.is_strict):
            fail_with(failure.render(compose([section])))
        return result


@contextmanager
def _named_faults(item: pytest.Item) -> Iterator[None]:
    """Ends the test with the message of a known fault; one of the machine or the stack is infra."""
    try:
        yield
    except LdosError as error:
        _end_as_infra(item, error)


def _end_as_infra(item: pytest.Item, error: LdosError, stack: StackSpec | None = None) -> NoReturn:
    if isinstance(error, ConfigurationError):
        fail_with(str(error))
    session, run = session_of(item.config), item.stash.get(_RUN, None)
    scenario = run.spec.name if run else session.settings.scenario_of(item).name
    requested = _requested_kind(session.settings, run.spec.stack if run else stack)
    begun = session.record.runs_of(item.nodeid)
    interference = begun[-1].surroundings.measure() if begun else None
    session.ledger.enter_infra(item.nodeid, scenario, error, stack=requested, interference=interference)
    fail_with("\n".join([f"scenario '{scenario}': infra", str(error), *_load(interference)]))


def _load(interference: Interference | None) -> Iterator[str]:
    """The sentence on what else used the machine, where that matters."""
    from pytest_ldos.show.report.version_reports import report_surroundings
    from pytest_ldos.show.report.words import describe_load

    load = describe_load(report_surroundings(interference))
    if load:
        yield load


def _requested_kind(settings: Settings, stack: StackSpec | None) -> str:
    """The kind of a stack that could not be measured; empty if the test failed before it was known."""
    from pytest_ldos.robot.stack.choose import resolve_kind
    from pytest_ldos.scenario.words import StackKind

    if stack is None:
        return ""
    is_built = settings.value("build") and stack.kind is StackKind.AUTO
    return (StackKind.ROS2 if is_built else resolve_kind(stack)).value
