"""The parts of a scenario test: a stack, loads, trials and the gate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, NoReturn

import pytest

from pytest_ldos.base.errors import ConfigurationError, LdosError, NotWritten
from pytest_ldos.campaign import blocks
from pytest_ldos.campaign.blocks import Bench, StoredBase, describe_turns, interleave, measure_alone
from pytest_ldos.campaign.order import Role
from pytest_ldos.campaign.watching import find_evidence, in_words, spec_of_evidence
from pytest_ldos.host.checkout import is_changed, read_changes
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.store import Found, Lookup, NoBaseline, NotComparable
from pytest_ldos.judge.gate.case import fails_more_often
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.judge.gate.verdict import Verdict, is_failure
from pytest_ldos.judge.judging import (
    Grounds,
    Judged,
    Judgement,
    Screen,
    has_other_settings,
    is_equal_stack,
    judge,
    write_judgement,
)
from pytest_ldos.judge.unchanged import keep_run
from pytest_ldos.measure.load.protocol import RepeatedLoad, RunningLoad
from pytest_ldos.measure.metrics.catalogue import Catalogue
from pytest_ldos.measure.trial.artifacts import BLOCKS, is_worth_keeping
from pytest_ldos.measure.trial.conduct import why_ended
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.plugin.ledger import Ledger, metrics_of
from pytest_ldos.plugin.messages import fail_with
from pytest_ldos.plugin.progress import Progress, TrialWatch
from pytest_ldos.plugin.runs import ScenarioRun
from pytest_ldos.plugin.settings import Settings, require_loads
from pytest_ldos.plugin.standby import session_of
from pytest_ldos.record.profiles import Evidence
from pytest_ldos.robot.stack.choose import require_goals, resolve_kind
from pytest_ldos.robot.stack.goals import Goal
from pytest_ldos.scenario.fields import revise_spec
from pytest_ldos.scenario.loads import LOAD_SPECS, LoadSpec
from pytest_ldos.scenario.model import ScenarioSpec, StackSpec
from pytest_ldos.scenario.words import StackKind
from pytest_ldos.show.report.compose import compose, compose_section, report_surroundings
from pytest_ldos.show.report.document import Section
from pytest_ldos.show.report.reasons import describe_reason
from pytest_ldos.show.report.terminal import render_failure
from pytest_ldos.show.report.words import describe_load


def grounds_for(
    settings: Settings, ledger: Ledger, run: ScenarioRun, trials: TrialSet, base: TrialSet | None = None
) -> Grounds:
    stores, policy = settings.stores, ledger.policy
    if base is None:
        grounds = Grounds.stored(trials, stores, policy).shortened(settings.root)
        screens = (
            isinstance(grounds.base, Found)
            and not run.is_unconfirmed
            and not why_not_confirmed(settings, trials, grounds.base.trials)
        )
        return replace(grounds, policy=replace(grounds.policy, screens=screens))
    file, label = run.folder_of(trials).base.trials_file, run.versions[Role.BASE].name
    grounds = Grounds.given(trials, base, file, stores=stores, policy=policy, label=label).shortened(settings.root)
    return replace(grounds, screen=run.screens.get(trials.session, run.confirming))


def why_not_confirmed(settings: Settings, trials: TrialSet, base: TrialSet) -> str:
    """The reason not to measure a suspicious run again, interleaved with the baseline's commit; empty if it is."""
    reasons = {
        "--ldos-confirm is 0": not settings.value("confirm"),
        "it becomes the baseline": settings.value("update_baseline"),
        "the baseline names no commit": not base.commit,
        "the baseline was recorded with uncommitted changes; record it again from a commit": is_changed(base.commit),
        "both commits would have this run's settings, which are not the baseline's": has_other_settings(trials, base),
        "exactly the baseline's stack ran": is_equal_stack(trials, base),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def judge_run(settings: Settings, ledger: Ledger, run: ScenarioRun, trials: TrialSet) -> tuple[GateResult, Section]:
    """Judges trials; saves the grounds, and the run as a known one or as the baseline."""
    interleaved = next((each for each in run.interleaved if each.head.session == trials.session), None)
    grounds = grounds_for(settings, ledger, run, trials, None if interleaved is None else interleaved.base)
    judged = judge(trials, grounds)
    facts = [describe_turns(interleaved)] if interleaved is not None else []
    facts += [*run.version_notes, *run.notes]
    run.notes = []  # each is in one report only
    made_by, notes, evidence = version("pytest-ldos"), [*facts], None
    judgement = Judgement(grounds=grounds, verdict=judged.result.verdict, made_by=made_by, notes=tuple(facts))
    try:
        write_judgement(run.folder_of(trials), judgement)
        if interleaved is not None and judged.result.verdict is Verdict.REGRESSED:
            evidence, found = _profile_regression(settings, run, interleaved)
            notes += found
            write_judgement(run.folder_of(trials), replace(judgement, notes=tuple(notes), evidence=evidence))
    except NotWritten as error:
        notes.append(f"ldos report cannot reproduce this verdict: {error.message}")
    notes += _record(settings, judged, grounds.base)
    notes += _keep_known(settings, judged, grounds)
    notes += _describe_traces(settings, run, judged)
    return judged.result, compose_section(judged, notes=notes, evidence=evidence)


def _profile_regression(
    settings: Settings, run: ScenarioRun, made: blocks.Interleaved
) -> tuple[Evidence | None, list[str]]:
    """Evidence from profiles, and notes, also of a failure; an interruption ends the session after this test."""
    watch, pairs, notes = made.bench.watch, settings.value("evidence"), list[str]()
    try:
        if pairs and not settings.watch_spec.profile:
            profiles = TrialWatch(spec_of_evidence(settings.watch_spec), made.bench.folder.path, run.spec.name)
            watch = profiles.of
            try:
                blocks.profile_again(made, pairs, watch, run.announce)
            finally:
                notes += dict.fromkeys(profiles.write())
        changes = read_changes(settings.root, *(made.versions[role].commit for role in (Role.BASE, Role.HEAD)))
        return find_evidence(watch(Role.BASE), watch(Role.HEAD), changes), notes
    except BaseException as reason:  # noqa: BLE001 - the verdict stands, also if a plugin's time limit ends this
        why = in_words(reason) if isinstance(reason, LdosError) else why_ended(reason)
        if isinstance(reason, KeyboardInterrupt):
            settings.config.pluginmanager.getplugin("session").shouldstop = why
        return None, [*notes, f"no evidence from profiles: {why}"]


def _keep_known(settings: Settings, judged: Judged, grounds: Grounds) -> list[str]:
    """Saves this run, and the base of a refuted suspicion, as known runs; returns a note if that fails."""
    known: list[TrialSet] = []
    if judged.own.verdict is Verdict.PASSED:
        known = [judged.head if grounds.screen is None else grounds.screen.head]
        is_refuted = grounds.screen is not None and judged.result.verdict in {Verdict.PASSED, Verdict.IMPROVED}
        if is_refuted and judged.base is not None:
            known.append(replace(judged.base, session="", looks=(), last_look=None))
    try:
        for each in known:
            keep_run(settings.stores.local, each)
    except LdosError as error:
        return [f"this run is not added to the known runs: {error.message}"]
    return []


def _describe_traces(settings: Settings, run: ScenarioRun, judged: Judged) -> list[str]:
    sets = [judged.head, *([judged.base] if judged.base is not None and judged.is_interleaved else [])]
    regressed, policy = judged.result.verdict is Verdict.REGRESSED, settings.value("traces")
    if not any(is_worth_keeping(each, regressed=regressed, policy=policy) for each in sets):
        return []
    folder = run.folder_of(judged.head)
    if len(sets) > 1:
        return [f"traces: {folder.path / BLOCKS}"]
    if not judged.head.trace:
        return []
    more = f"; those of the other starts: {folder.path / BLOCKS}" if (folder.path / BLOCKS).exists() else ""
    return [f"trace: {folder.trace}{more}"]


def _record(settings: Settings, judged: Judged, lookup: Lookup) -> list[str]:
    """Records the run as a baseline if requested, or if it is the first; returns notes."""
    trials, own, shown = judged.head, judged.own, judged.result.reasons
    asked = settings.value("update_baseline")
    stands = isinstance(lookup, NotComparable) and lookup.is_ours
    is_first = isinstance(lookup, NoBaseline | NotComparable) and not stands and not settings.is_strict
    if not (asked or is_first):
        return []
    if trials.watched:
        return [f"not recorded as a baseline: it was watched by {trials.watched}"]
    if own.verdict is not Verdict.PASSED:
        why = "" if own.reasons[0] in shown else f": {describe_reason(own.reasons[0])}"
        return [f"not recorded as a baseline{why}"]
    stores = settings.stores
    file = stores.update(trials) if asked else stores.save(trials, to_repository=False)
    which = "new baseline" if asked else f"first baseline of this host class ({BaselineKey.of(trials).host_class})"
    return [f"recorded as the {which}: {settings.short(file)}"]


_RUN: pytest.StashKey[ScenarioRun] = pytest.StashKey()


def open_scenario_run(request: pytest.FixtureRequest, stack: StackSpec) -> Iterator[ScenarioRun]:
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
    @contextmanager
    def apply() -> Iterator[dict[str, Any]]:
        with ExitStack() as resources:
            yield {spec.KIND: resources.enter_context(_applied(item, run, spec)) for spec in run.spec.loads}

    return apply


def one_load(kind: str, item: pytest.Item, run: ScenarioRun) -> Callable[..., AbstractContextManager[RunningLoad]]:
    def apply(**settings: Any) -> AbstractContextManager[RunningLoad]:
        with _named_faults(item):
            spec = revise_spec(run.spec.load(kind) or LOAD_SPECS[kind](), settings, kind)
        return _applied(item, run, spec)

    return apply


@contextmanager
def _applied(item: pytest.Item, run: ScenarioRun, spec: LoadSpec) -> Iterator[Any]:
    """Applies a load to every stack started within the ``with`` block."""
    with _named_faults(item):
        require_loads([spec], run.spec)
        load = RepeatedLoad(spec)
        run.loads.append(load)
        try:
            yield load
        finally:
            run.loads.remove(load)


def trial_maker(request: pytest.FixtureRequest) -> Callable[..., TrialSet]:
    session, item = session_of(request.config), request.node

    def make(run: ScenarioRun, goals: Any = None, n: int | None = None) -> TrialSet:
        session.ledger.refuse_after_failure(item.nodeid)
        goals = run.spec.goals if goals is None else goals
        with _named_faults(item):
            catalogue = metrics_of(item, session.settings)
            if isinstance(goals, str):
                require_goals(run.spec.stack, goals)
            goals = goals if isinstance(goals, str) else tuple(goals)
            trials = TrialMaker(session.settings, session.ledger, run, goals, catalogue).make(n)
        run.add_trials(trials)
        return trials

    return make


class Gate:
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
            fail_with(render_failure(compose([section])))
        return result


@contextmanager
def _named_faults(item: pytest.Item) -> Iterator[None]:
    """Ends the test with the message of a known fault; faults of the machine or the stack are infra."""
    try:
        yield
    except LdosError as error:
        _end_as_infra(item, error)


def _end_as_infra(item: pytest.Item, error: LdosError, stack: StackSpec | None = None) -> NoReturn:
    """Ends the test; its message has other use of the machine, if that matters."""
    if isinstance(error, ConfigurationError):
        fail_with(str(error))
    session, run = session_of(item.config), item.stash.get(_RUN, None)
    scenario = run.spec.name if run else session.settings.scenario_of(item).name
    stack = run.spec.stack if run else stack
    requested = ""  # the kind, if it was known
    if stack is not None:
        is_built = session.settings.value("build") and stack.kind is StackKind.AUTO
        requested = (StackKind.ROS2 if is_built else resolve_kind(stack)).value
    begun = session.record.runs_of(item.nodeid)
    interference = begun[-1].surroundings.measure() if begun else None
    session.ledger.enter_infra(item.nodeid, scenario, error, stack=requested, interference=interference)
    load = describe_load(report_surroundings(interference))
    fail_with("\n".join(filter(None, [f"scenario '{scenario}': infra", str(error), load])))


@dataclass(frozen=True)
class TrialMaker:
    settings: Settings
    ledger: Ledger
    run: ScenarioRun
    goals: Sequence[Goal] | str
    catalogue: Catalogue

    def make(self, n: int | None) -> TrialSet:
        """Makes `n` trials (the command line overrides it), and returns head's.

        Adds more while the comparison with the stored baseline is inconclusive.
        """
        self.run.begin_trials()
        run = self.run
        spec = replace(run.spec, loads=tuple(load.spec for load in run.loads))
        if isinstance(self.goals, str):
            spec = replace(spec, goals=self.goals)
        if n is not None and "trials" not in self.settings.sources.command_line:
            spec = replace(spec, trials=n)
        with self._watched(spec.name) as watch:
            bench = self._bench(spec, watch)
            if Role.BASE in run.versions and not run.screens:
                return self._make_interleaved(bench)
            size = self.settings.value("block")
            trials = measure_alone(bench, run.versions[Role.HEAD], size=size, find_base=self._stored_base)
        return self._confirmed(trials, spec)

    @contextmanager
    def _watched(self, title: str) -> Iterator[TrialWatch]:
        watch = TrialWatch(self.settings.watch_spec, self.run.folder.path, title)
        try:
            yield watch
        finally:
            self.run.notes += watch.write()

    def _bench(self, spec: ScenarioSpec, watch: TrialWatch) -> Bench:
        return Bench(
            spec=spec,
            folder=self.run.folder,
            goals=self.goals,
            catalogue=self.catalogue,
            loads=tuple(self.run.loads),
            paths=self.settings.sources.toml.paths,
            observer=Progress(self.settings.config, is_alone=Role.BASE not in self.run.versions),
            watch=watch.of,
            clock=self.run.clock,
        )

    def _stored_base(self, trials: TrialSet) -> StoredBase | None:
        grounds = grounds_for(self.settings, self.ledger, self.run, trials)
        if not isinstance(grounds.base, Found):
            return None
        return StoredBase(len(grounds.base.trials.trials), lambda head: judge(head, grounds).result)

    def _make_interleaved(self, bench: Bench, *, until_s: float = math.inf) -> TrialSet:
        """Interleaves trials of head and base; adds none after a time of `time.monotonic`."""

        def decide(head: TrialSet, base: TrialSet) -> GateResult:
            found = judge(head, grounds_for(self.settings, self.ledger, self.run, head, base)).result
            return found if time.monotonic() < until_s else replace(found, more_trials_because=())

        made = interleave(bench, self.run.versions, size=self.settings.value("block"), decide=decide)
        self.run.interleaved.append(made)
        return made.head

    def _confirmed(self, trials: TrialSet, spec: ScenarioSpec) -> TrialSet:
        """Returns the trials; if they are suspicious, new ones, interleaved with the baseline's commit."""
        run = self.run
        grounds = grounds_for(self.settings, self.ledger, run, trials)
        if not isinstance(grounds.base, Found):
            return trials
        base, judged = grounds.base.trials, judge(trials, grounds)
        suspicious = [each for each in judged.result.comparisons if each.is_suspicious]
        is_sound = judged.own.verdict is Verdict.PASSED and judged.result.verdict is not Verdict.INVALID
        if not is_sound or not (suspicious or fails_more_often(trials, base)):
            return trials
        what = ", ".join(f"{each.metric} ×{each.ratio:.3g}" for each in suspicious) or "failures"
        suspicion = f"suspicious against the stored baseline: {what}"
        why_not = why_not_confirmed(self.settings, trials, base)
        if not why_not:
            try:
                run.versions = run.find_base(base=base.commit)
            except LdosError as error:
                why_not = error.message
        if why_not:
            run.is_unconfirmed = True
            run.notes.append(f"{suspicion}; not measured again: {why_not}")
            return trials
        minutes = self.settings.value("confirm")
        run.announce(f"{suspicion}; measuring it interleaved with {base.commit}, for {minutes} min at most")
        run.begin_trials()
        until_s = time.monotonic() + 60 * minutes
        spec = replace(spec, max_trials=max(spec.max_trials, 30))  # the scenario may allow more
        names = tuple(each.metric for each in suspicious)
        screen = Screen(head=trials, base=base, suspicious=names, known=grounds.policy.known)
        run.confirming = screen
        try:
            with self._watched(spec.name) as watch:
                made = self._make_interleaved(self._bench(spec, watch), until_s=until_s)
        finally:
            run.confirming = None
        run.screens[made.session] = screen
        run.notes.append(f"{suspicion}; measured again, interleaved with {base.commit}")
        return made
