"""The parts of a scenario test: a stack, loads, trials and the gate."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError
from pytest_ldos.campaign.blocks import Bench, StoredBase, interleave, measure_alone
from pytest_ldos.campaign.order import Role
from pytest_ldos.judge.baseline.lookup import Found
from pytest_ldos.judge.gate.case import fails_more_often
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.judging import Screen, judge
from pytest_ldos.measure.metrics.catalogue import Catalogue
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.plugin.judging import grounds_for, why_not_confirmed
from pytest_ldos.plugin.ledger import Ledger
from pytest_ldos.plugin.messages import fail_with
from pytest_ldos.plugin.preflight import require_goals_of
from pytest_ldos.plugin.progress import Progress
from pytest_ldos.plugin.scenario_run import ScenarioRun
from pytest_ldos.plugin.scenarios import require_loads
from pytest_ldos.plugin.selection import metrics_of
from pytest_ldos.plugin.settings import Settings
from pytest_ldos.plugin.standby import session_of
from pytest_ldos.plugin.watching import TrialWatch
from pytest_ldos.robot.stack.goals import Goal
from pytest_ldos.scenario.fields import revise_spec
from pytest_ldos.scenario.loads.registry import LOAD_SPECS
from pytest_ldos.scenario.loads.spec import LoadSpec
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec

if TYPE_CHECKING:
    from pytest_ldos.host.interference import Interference
    from pytest_ldos.measure.load.protocol import RunningLoad


_RUN: pytest.StashKey[ScenarioRun] = pytest.StashKey()


def open_scenario_run(request: pytest.FixtureRequest, stack: StackSpec) -> Iterator[ScenarioRun]:
    """Opens the run of a scenario test, and ends it with the test."""
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
    """Returns a function that applies all loads of a scenario at once."""

    @contextmanager
    def apply() -> Iterator[dict[str, Any]]:
        with ExitStack() as resources:
            yield {spec.KIND: resources.enter_context(_applied(item, run, spec)) for spec in run.spec.loads}

    return apply


def one_load(kind: str, item: pytest.Item, run: ScenarioRun) -> Callable[..., AbstractContextManager[RunningLoad]]:
    """Returns a function that applies one load; settings default to the scenario's."""

    def apply(**settings: Any) -> AbstractContextManager[RunningLoad]:
        with _named_faults(item):
            spec = revise_spec(run.spec.load(kind) or LOAD_SPECS[kind](), settings, kind)
        return _applied(item, run, spec)

    return apply


@contextmanager
def _applied(item: pytest.Item, run: ScenarioRun, spec: LoadSpec) -> Iterator[Any]:
    """Applies a load to every stack started within the ``with`` block."""
    from pytest_ldos.measure.load.choose import RepeatedLoad

    with _named_faults(item):
        require_loads([spec], run.spec, run.environments)
        load = RepeatedLoad(spec)
        run.loads.append(load)
        try:
            yield load
        finally:
            run.loads.remove(load)


def trial_maker(request: pytest.FixtureRequest) -> Callable[..., TrialSet]:
    """Returns a function that makes trials of a stack, and keeps them until they are judged."""
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
        """Returns the verdict on trials compared with their baseline, or with their interleaved base.

        Without a baseline, this run's trials become the local one, unless the run is strict. The test fails if the
        trials regressed or could not be measured, and in a strict run also without a verdict. A test judges one set of
        trials, because a second set would have the same baseline and the same part of the error budget.
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
    """Ends the test with the message of a known fault; faults of the machine or the stack are infra."""
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
    """Sentence on other use of the machine, if it matters."""
    from pytest_ldos.show.report.part_reports import report_surroundings
    from pytest_ldos.show.report.words import describe_load

    load = describe_load(report_surroundings(interference))
    if load:
        yield load


def _requested_kind(settings: Settings, stack: StackSpec | None) -> str:
    """The kind of a stack that could not be measured; empty if it was not yet known."""
    from pytest_ldos.robot.stack.choose import resolve_kind
    from pytest_ldos.scenario.words import StackKind

    if stack is None:
        return ""
    is_built = settings.value("build") and stack.kind is StackKind.AUTO
    return (StackKind.ROS2 if is_built else resolve_kind(stack)).value


Goals = Sequence[Goal] | str

_MOST_CONFIRMING: Final = 30
"""Most trials of each version to confirm a suspicion, unless the scenario allows more."""


@dataclass(frozen=True)
class TrialRequest:
    """The trials requested by a test: a scenario, its goals, and the metrics."""

    spec: ScenarioSpec
    goals: Goals
    catalogue: Catalogue


@dataclass(frozen=True)
class TrialMaker:
    """Makes the trials of one scenario run."""

    settings: Settings
    ledger: Ledger
    run: ScenarioRun

    def make(self, goals: Goals, n: int | None, catalogue: Catalogue) -> TrialSet:
        """Makes trials, and returns head's.

        Args:
            n: requested number of trials; the command line overrides it.
            catalogue: metrics to measure.
        """
        self.run.begin_trials()
        run, request = self.run, TrialRequest(self._spec_for(goals, n), goals, catalogue)
        with self._watched(request.spec.name) as watch:
            bench = self._bench(request, watch)
            if Role.BASE in run.versions and not run.screens:
                return self._make_interleaved(bench)
            trials = self._make_alone(bench)
        return self._confirmed(trials, request)

    def _spec_for(self, goals: Goals, n: int | None) -> ScenarioSpec:
        """The scenario with the running loads, and the test's requests."""
        spec = dataclasses.replace(self.run.spec, loads=tuple(load.spec for load in self.run.loads))
        if isinstance(goals, str):
            spec = dataclasses.replace(spec, goals=goals)
        if n is not None and "trials" not in self.settings.sources.command_line:
            spec = dataclasses.replace(spec, trials=n)
        return spec

    @contextmanager
    def _watched(self, title: str) -> Iterator[TrialWatch]:
        """Watches trials with the profilers in the settings, and always writes their files."""
        watch = TrialWatch(self.settings.watch_spec, self.run.folder.path, title)
        try:
            yield watch
        finally:
            self.run.notes += watch.write()

    def _bench(self, request: TrialRequest, watch: TrialWatch) -> Bench:
        return Bench(
            spec=request.spec,
            folder=self.run.folder,
            goals=request.goals,
            catalogue=request.catalogue,
            loads=tuple(self.run.loads),
            paths=self.settings.sources.toml.paths,
            observer=Progress(self.settings.config, is_alone=Role.BASE not in self.run.versions),
            watch=watch.of,
            clock=self.run.clock,
        )

    def _make_alone(self, bench: Bench) -> TrialSet:
        """Makes head's trials, and adds more while the comparison with the stored baseline is inconclusive."""
        head = self.run.versions[Role.HEAD]
        return measure_alone(bench, head, size=self.settings.value("block"), find_base=self._stored_base)

    def _stored_base(self, trials: TrialSet) -> StoredBase | None:
        grounds = grounds_for(self.settings, self.ledger, self.run, trials)
        if not isinstance(grounds.base, Found):
            return None
        return StoredBase(len(grounds.base.trials.trials), lambda head: judge(head, grounds).result)

    def _make_interleaved(self, bench: Bench, *, until_s: float = math.inf) -> TrialSet:
        """Makes head's trials, interleaved with the base's.

        Args:
            until_s: time of `time.monotonic` after which no more are added.
        """

        def decide(head: TrialSet, base: TrialSet) -> GateResult:
            found = judge(head, grounds_for(self.settings, self.ledger, self.run, head, base)).result
            return found if time.monotonic() < until_s else dataclasses.replace(found, more_trials_because=())

        made = interleave(bench, self.run.versions, size=self.settings.value("block"), decide=decide)
        self.run.interleaved.append(made)
        return made.head

    def _confirmed(self, trials: TrialSet, request: TrialRequest) -> TrialSet:
        """Returns the trials; if they are suspicious, new trials of head, interleaved with the baseline's commit."""
        grounds = grounds_for(self.settings, self.ledger, self.run, trials)
        if not isinstance(grounds.base, Found):
            return trials
        base, judged = grounds.base.trials, judge(trials, grounds)
        suspicious = [each for each in judged.result.comparisons if each.is_suspicious]
        is_sound = judged.own.verdict is Verdict.PASSED and judged.result.verdict is not Verdict.INVALID
        if not is_sound or not (suspicious or fails_more_often(trials, base)):
            return trials
        names = tuple(each.metric for each in suspicious)
        what = ", ".join(f"{each.metric} ×{each.ratio:.3g}" for each in suspicious) or "failures"
        why_not = why_not_confirmed(self.settings, trials, base) or self._find_base(base.commit)
        if why_not:
            self.run.is_unconfirmed = True
            self.run.notes.append(f"suspicious against the stored baseline: {what}; not measured again: {why_not}")
            return trials
        minutes = self.settings.value("confirm")
        suspicion = f"suspicious against the stored baseline: {what}"
        self.run.announce(f"{suspicion}; measuring it interleaved with {base.commit}, for {minutes} min at most")
        self.run.begin_trials()
        until_s = time.monotonic() + 60 * minutes
        most = max(request.spec.max_trials, _MOST_CONFIRMING)
        again = dataclasses.replace(request, spec=dataclasses.replace(request.spec, max_trials=most))
        screen = Screen(head=trials, base=base, suspicious=names, known=grounds.policy.known)
        self.run.confirming = screen
        try:
            with self._watched(request.spec.name) as watch:
                made = self._make_interleaved(self._bench(again, watch), until_s=until_s)
        finally:
            self.run.confirming = None
        self.run.screens[made.session] = screen
        self.run.notes.append(f"{suspicion}; measured again, interleaved with {base.commit}")
        return made

    def _find_base(self, commit: str) -> str:
        """Finds the baseline's version; returns the reason if it cannot be found, or an empty text."""
        try:
            self.run.versions = self.run.find_base(base=commit)
        except LdosError as error:
            return error.message
        return ""
