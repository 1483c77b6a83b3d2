"""The conductor: sends goals one after another, keeps what came of them, judges nothing."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from pytest_ldos.errors import LdosError
from pytest_ldos.host.checkout import describe_commit
from pytest_ldos.host.fingerprint import take_fingerprint
from pytest_ldos.load.protocol import RunningLoad, proof_to_dict
from pytest_ldos.metrics.catalogue import METRICS, Catalogue, catalogue_of
from pytest_ldos.metrics.own import OwnMetric
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.paths import BUILT_IN_PATHS, PathSpec
from pytest_ldos.stack.client_protocol import TrialTag
from pytest_ldos.stack.goals import Goal, OutcomeClass
from pytest_ldos.stack.protocol import MotionOutcome
from pytest_ldos.trial.artifacts import write_trials
from pytest_ldos.trial.measure import measure_trials
from pytest_ldos.trial.record import Trial, TrialSet
from pytest_ldos.trial.rig import Rig
from pytest_ldos.trial.watch import NoWatch, Watch

Disturb = Callable[[], AbstractContextManager[Sequence[RunningLoad]]]
"""Applies loads for as long as the context lasts; gives those that run."""


def undisturbed() -> AbstractContextManager[Sequence[RunningLoad]]:
    """See `Disturb`: nothing."""
    return nullcontext(())


Save = Callable[[TrialSet], None]
"""Writes down the record of trials in the making."""


class Observer(Protocol):
    """Somebody who watches trials being made, to show progress."""

    def begin(self, spec: ScenarioSpec, *, trials: range, warmup: int) -> None:
        """Trials of a scenario begin: those of these indices, behind so many warm-up trials."""

    def warm_up(self, number: int) -> None:
        """A warm-up trial (from 1) has ended."""

    def trial(self, trial: Trial) -> None:
        """A trial has ended; its measurements are not there yet."""

    def end(self) -> None:
        """No more trials come."""


class Unwatched:
    """See `Observer`."""

    def begin(self, spec: ScenarioSpec, *, trials: range, warmup: int) -> None: ...

    def warm_up(self, number: int) -> None: ...

    def trial(self, trial: Trial) -> None: ...

    def end(self) -> None: ...


class _StackIsGone(Exception):
    """No further goal can be sent."""


@dataclass(frozen=True, kw_only=True)
class Procedure:
    """How trials are made: the same for all that are to be compared.

    Attributes:
        goals: they take turns.
        disturb: applies the loads, after the warm-up trials: these warm the stack up, not the load.
        beside: loads that are there before, and so beside the warm-up trials, too.
        paths: causal paths whose segments are kept with each trial.
        catalogue: metrics that are taken: ours, and a user's own beside them.
        watch: watches the stack while trials are made, beside the tracer; not while it warms up.
    """

    goals: Sequence[Goal]
    catalogue: Catalogue = field(default_factory=lambda: METRICS)
    disturb: Disturb = undisturbed
    beside: Sequence[RunningLoad] = ()
    paths: Sequence[PathSpec] = BUILT_IN_PATHS
    observer: Observer = field(default_factory=Unwatched)
    watch: Watch = field(default_factory=NoWatch)


def conduct(
    rig: Rig,
    spec: ScenarioSpec,
    goals: Sequence[Goal],
    *,
    disturb: Disturb = undisturbed,
    paths: Sequence[PathSpec] = BUILT_IN_PATHS,
    own: Iterable[OwnMetric] = (),
    observer: Observer | None = None,
) -> TrialSet:
    """Makes the trials of a scenario and measures them; see `add_trials` and `Procedure`.

    Args:
        own: metrics of a user's own, taken beside ours.

    Raises:
        ConfigurationError: an own metric has a name that is taken.
    """
    procedure = Procedure(
        goals=goals, catalogue=catalogue_of(own), disturb=disturb, paths=paths, observer=observer or Unwatched()
    )
    save = partial(write_trials, rig.folder)
    record = new_record(rig, spec, procedure.catalogue)
    return add_trials(rig, record, procedure, until=spec.trials, warmup=spec.warmup, save=save)


def add_trials(
    rig: Rig, record: TrialSet, procedure: Procedure, *, until: int, warmup: int, save: Save, block: int = 0
) -> TrialSet:
    """Makes the trials that a record lacks, and measures them.

    The arm goes home after each. Warm-up trials come first and leave no markers. After each
    trial the record is saved; whatever ends it early, what was made so far is measured and
    saved as `incomplete`, and what ended it goes on.

    Args:
        until: how many trials the record has at the end.
        block: the stack start that `rig` is; see `Trial`.
    """
    session = _Session(rig, procedure, record, block, save, loads=procedure.beside)
    procedure.observer.begin(record.spec, trials=range(len(record.trials), until), warmup=warmup)
    try:
        with _measured_at_end(session):
            session.warm_up(warmup)
            with procedure.watch.beside(rig), procedure.disturb() as applied:
                session.loads = (*procedure.beside, *applied)
                session.run(until)
    except _StackIsGone as gone:
        session.leave_incomplete(str(gone))
    except BaseException as reason:
        session.leave_incomplete(why_ended(reason))
        raise
    finally:
        procedure.observer.end()
    return session.snapshot()


def why_ended(reason: BaseException) -> str:
    """What a record says of that which ended it early."""
    if isinstance(reason, LdosError):
        return str(reason)
    if isinstance(reason, KeyboardInterrupt):
        return str(reason) or "the run was interrupted"
    return f"{type(reason).__name__}: {reason}"


@dataclass
class _Session:
    """Trials in the making.

    Attributes:
        record: what there was before, without `trials`.
        trials: those that are added.
        loads: that are applied beside them.
    """

    rig: Rig
    procedure: Procedure
    record: TrialSet
    block: int
    save: Save
    trials: list[Trial] = field(default_factory=list)
    loads: Sequence[RunningLoad] = ()

    @property
    def spec(self) -> ScenarioSpec:
        return self.record.spec

    def move(self, goal: Goal, index: int, *, is_trial: bool) -> MotionOutcome:
        tag = TrialTag(self.spec.name, index) if is_trial else None
        outcome = self.rig.stack.move(
            goal,
            goal_id=uuid.uuid4().hex,
            seed=self.seed(index),
            trial=tag,
            # With the same random numbers, equal plans also need the same start, to the last bit.
            start=self.home.joints if self.rig.stack.is_repeatable and goal is not self.home else None,
        )
        if outcome.outcome is OutcomeClass.STACK_DIED and not is_trial:
            raise _StackIsGone(outcome.message)
        return outcome

    @property
    def home(self) -> Goal:
        return self.rig.stack.goal_book.home

    def seed(self, index: int) -> int | None:
        """Of a trial's planning; ``None`` where the planner takes none."""
        return self.spec.seed(index) if self.rig.stack.is_repeatable else None

    def go_home(self, index: int) -> None:
        """Every trial begins at the same place; a goal equal to the present pose would be none."""
        outcome = self.move(self.home, index, is_trial=False)
        if outcome.outcome is not OutcomeClass.SUCCESS:
            raise _StackIsGone(f"the arm could not return home ({outcome.outcome}: {outcome.message})")

    def warm_up(self, count: int) -> None:
        for number in range(1, count + 1):
            self.move(self.procedure.goals[0], 0, is_trial=False)
            self.go_home(0)
            self.procedure.observer.warm_up(number)

    def run(self, until: int) -> None:
        goals = self.procedure.goals
        for index in range(len(self.record.trials), until):
            goal = goals[index % len(goals)]
            outcome = self.move(goal, index, is_trial=True)
            trial = _to_trial(outcome, goal, index=index, seed=self.seed(index), block=self.block)
            self.trials.append(trial)
            self.save(self.snapshot())
            self.procedure.observer.trial(trial)
            if outcome.outcome is OutcomeClass.STACK_DIED:
                raise _StackIsGone(outcome.message)
            self.go_home(index)

    def take_proofs(self) -> None:
        """Notes what the loads did in this block, in place of what was noted of it before."""
        proofs = [{**proof_to_dict(load.proof), "block": self.block} for load in self.loads]
        others = [proof for proof in self.record.loads if proof["block"] != self.block]
        self.record = replace(self.record, loads=(*others, *proofs))

    def take_losses(self, discarded_events: int) -> None:
        """Notes what the tracer lost since this stack's start; a block that is continued is the record's only one."""
        is_continued = any(trial.block == self.block for trial in self.record.trials)
        before = 0 if is_continued else self.record.discarded_events
        self.record = replace(self.record, discarded_events=before + discarded_events)

    def take_watch(self) -> None:
        """Notes which tools did watch, of those that were to."""
        watch = self.procedure.watch
        self.record = replace(self.record, watched=watch.tools, distortion=watch.distortion)

    def leave_incomplete(self, reason: str) -> None:
        """Writes down why the trials that were still to come were not made."""
        self.record = replace(self.record, incomplete=reason)
        self.save(self.snapshot())

    def snapshot(self) -> TrialSet:
        return replace(self.record, trials=(*self.record.trials, *self.trials))


@contextmanager
def _measured_at_end(session: _Session) -> Iterator[None]:
    """However the trials end: proofs are taken, the trace is read, the record is saved."""
    try:
        yield
    finally:
        session.take_proofs()
        session.take_losses(session.rig.recorder.pause().discarded_events)
        session.procedure.watch.read(session.rig, len(session.trials))
        session.take_watch()
        if session.trials:
            session.trials[:] = measure_trials(
                session.trials,
                session.rig,
                session.procedure.paths,
                catalogue=session.procedure.catalogue,
                deadlines=session.spec.deadlines,
            )
        session.save(session.snapshot())
        session.rig.recorder.resume()


def _to_trial(outcome: MotionOutcome, goal: Goal, *, index: int, seed: int | None, block: int) -> Trial:
    return Trial(
        index=index,
        goal=goal.name,
        goal_id=outcome.goal_id,
        seed=seed,
        block=block,
        outcome=outcome.outcome,
        error_code=outcome.error_code,
        message=outcome.message,
        stamps_ns=dict(outcome.stamps_ns),
        plan_duration_ns=outcome.plan_duration_ns,
        plan_points=outcome.plan_points,
        position_error_m=outcome.position_error_m,
        rotation_error_rad=outcome.rotation_error_rad,
    )


def new_record(
    rig: Rig,
    spec: ScenarioSpec,
    catalogue: Catalogue = METRICS,
    *,
    commit: str | None = None,
    watch: Watch | None = None,
) -> TrialSet:
    """A record without trials, of what the rig runs.

    Args:
        watch: that watches the stack beside the tracer, if there is one.
        commit: of the project under test; that of the checkout we are in unless given.
    """
    info = rig.stack.info
    return TrialSet(
        spec=spec,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=describe_commit(Path.cwd()) if commit is None else commit,
        stack_kind=info.kind,
        stack=info.description,
        recorder=rig.recorder.name,
        fingerprint=take_fingerprint(rmw=info.rmw, versions={**info.versions, "tracer": rig.recorder.name}),
        trials=(),
        trace=rig.folder.trace.name,
        metrics=tuple(metric.description for metric in catalogue.values()),
        watched="" if watch is None else watch.tools,
        distortion="" if watch is None else watch.distortion,
    )
