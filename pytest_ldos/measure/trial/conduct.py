"""Conducts trials: sends one goal after another and records the outcomes."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import LdosError
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, PathSpec
from pytest_ldos.base.series import Invalid
from pytest_ldos.host.checkout import commit_of
from pytest_ldos.host.cpu import describe_cpus, our_cpus
from pytest_ldos.host.fingerprint import find_influences, find_settings, find_tracers, find_withheld, take_fingerprint
from pytest_ldos.host.interference import Interference, InterferenceMeter, add_up
from pytest_ldos.measure.load.protocol import RunningLoad, proof_to_dict
from pytest_ldos.measure.metrics.catalogue import METRICS, Catalogue, OwnMetric, built_in_of, catalogue_of
from pytest_ldos.measure.metrics.model import Measurement
from pytest_ldos.measure.trial.artifacts import trace_not_whole, write_trials
from pytest_ldos.measure.trial.record import MotionTrial, TrialSet
from pytest_ldos.measure.trial.rig import OutsideMeter, PhaseClock, Rig, RunPhase, Watch, measure_trials
from pytest_ldos.record.protocol import RecordingReport
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.robot.stack.lines import MotionOutcome, TrialTag
from pytest_ldos.robot.stack.protocol import Attempt, MessageCase, Stimulus, StimulusCase
from pytest_ldos.robot.stack.ros2.state import find_parameters
from pytest_ldos.scenario.metrics import MetricSpec
from pytest_ldos.scenario.model import ScenarioSpec

Disturb = Callable[[], AbstractContextManager[Sequence[RunningLoad]]]
"""Context manager that applies loads; yields the running loads."""


def undisturbed() -> AbstractContextManager[Sequence[RunningLoad]]:
    return nullcontext(())


_OF_SETTINGS: Final = ("planner_id", "pipeline_id", "allowed_", "num_", "max_")  # what settings replace in a request


def content_of(case: StimulusCase) -> str:
    """Digest of a planning problem, whose name may stay when it changes; empty for other cases."""
    message = case.message if isinstance(case, MessageCase) else None
    if not message or "request" not in message:
        return ""
    request = {name: each for name, each in message["request"].items() if not name.startswith(_OF_SETTINGS)}
    text = json.dumps({**message, "request": request}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


TRIALS_PER_REPETITION: Final = 5  # number of requested trials per allowed repetition
Save = Callable[[TrialSet], None]  # writes the record of the trials so far to disk


class Observer:
    """Callbacks for showing progress, which do nothing unless overridden."""

    def begin(self, spec: ScenarioSpec, *, trials: range, warmup: int) -> None:
        """Called before a scenario's trials, with their indices and the number of warm-up trials before them."""

    def surroundings(self, found: Interference) -> None:
        """Called before the first trial of a start, with the interference since the stack's launch."""

    def warm_up(self, number: int) -> None:
        """Called after a warm-up trial (counted from 1)."""

    def trial(self, trial: MotionTrial) -> None:
        """Called after a trial; its measurements are not available yet."""

    def repeat(self, trial: MotionTrial) -> None:
        """Called after a trial that is repeated because of interference by other processes."""

    def reset_again(self, failure: str) -> None:
        """Called before the second attempt to reset the stack, with the first one's failure."""

    def end(self) -> None:
        """Called after the last trial."""


class _StackIsGone(Exception):
    """The stack has died; no further goal can be sent."""


@dataclass(frozen=True, kw_only=True)
class Procedure:
    """Procedure of the trials, equal for all compared versions."""

    goals: Sequence[StimulusCase]  # used in turn
    catalogue: Catalogue = field(default_factory=lambda: METRICS)  # metrics to measure
    disturb: Disturb = undisturbed  # applies the loads, after the warm-up trials
    paths: Sequence[PathSpec] = BUILT_IN_PATHS  # causal paths whose segments are kept with each trial
    observer: Observer = field(default_factory=Observer)
    watch: Watch | None = None  # observes the stack during the trials (not during warm-up), in addition to the tracer
    clock: PhaseClock = field(default_factory=PhaseClock)
    is_under_test: bool = True  # False for the base, which need not have every process of the requested metrics


def conduct(
    rig: Rig,
    spec: ScenarioSpec,
    goals: Sequence[StimulusCase],
    *,
    disturb: Disturb = undisturbed,
    own: Iterable[OwnMetric] = (),
    declared: Iterable[MetricSpec] = (),
    observer: Observer | None = None,
) -> TrialSet:
    """Runs and measures the trials of a scenario, with `own` and `declared` metrics; see `add_trials` and `Procedure`.

    Raises `ConfigurationError` if a metric's name is taken, or the stack lacks its process.
    """
    catalogue = catalogue_of(own, declared, built_in=built_in_of(spec.stack))
    procedure = Procedure(goals=goals, catalogue=catalogue, disturb=disturb, observer=observer or Observer())
    save = partial(write_trials, rig.folder)
    record = new_record(rig, spec, catalogue)
    return add_trials(rig, record, procedure, until=spec.trials, warmup=spec.warmup, save=save)


def add_trials(
    rig: Rig,
    record: TrialSet,
    procedure: Procedure,
    *,
    until: int,
    warmup: int,
    save: Save,
    block: int = 0,
    is_last: bool = False,
) -> TrialSet:
    """Runs and measures the trials that a record lacks.

    The stack is reset after each trial that another one follows (an arm moves home), with a second attempt if the first
    one fails. Warm-up trials come first and have no markers. The record is saved after each trial. If an exception ends
    the trials early, those so far are measured and saved as `incomplete`, and the exception is raised again.

    Args:
        until: total number of trials in the record at the end.
        block: number of the stack start of `rig`.
        is_last: True if nothing is recorded on this rig afterwards, so that it ends sooner; a stack that starts
            afresh is not reset either.
    """
    session = _Session(rig, procedure, record, block, save)
    watched = nullcontext() if procedure.watch is None else procedure.watch.attached_to(rig)
    procedure.observer.begin(record.spec, trials=range(len(record.trials), until), warmup=warmup)
    try:
        with _measured_at_end(session, is_last=is_last):
            session.warm_up(warmup)
            rig.stack.settle()
            session.outside.begin(is_under_test=procedure.is_under_test)
            procedure.observer.surroundings(rig.surroundings.measure())
            procedure.clock.enter(RunPhase.LOADS)
            with watched, procedure.disturb() as session.loads:
                session.run(until, is_last=is_last)
    except _StackIsGone as gone:
        session.leave_incomplete(str(gone))
    except BaseException as reason:
        session.leave_incomplete(why_ended(reason))
        raise
    finally:
        procedure.clock.enter(None)
        procedure.observer.end()
    return session.snapshot()


def why_ended(reason: BaseException) -> str:
    if isinstance(reason, LdosError):
        return str(reason)
    if isinstance(reason, KeyboardInterrupt):
        return str(reason) or "the run was interrupted"
    return f"{type(reason).__name__}: {reason}"


@dataclass
class _Session:
    """Trials in progress, which `record` does not contain; `own_pids` are processes of the measurement during them."""

    rig: Rig
    procedure: Procedure
    record: TrialSet
    block: int
    save: Save
    trials: list[MotionTrial] = field(default_factory=list)
    repeated: list[MotionTrial] = field(default_factory=list)
    own_pids: set[int] = field(default_factory=set)
    loads: Sequence[RunningLoad] = ()

    def __post_init__(self) -> None:
        self.outside = OutsideMeter(self.rig, self.procedure.catalogue)

    @property
    def spec(self) -> ScenarioSpec:
        return self.record.spec

    @property
    def stimulus(self) -> Stimulus:
        return self.rig.stack.stimulus

    def attempt(self, index: int, *, is_trial: bool) -> Attempt:
        tag = TrialTag(self.spec.name, index) if is_trial else None
        seed = self.spec.seed(index) if self.stimulus.takes_seeds else None
        return Attempt(uuid.uuid4().hex, index, seed, tag)

    def reset(self, index: int) -> str:
        """Resets the stack, with a second attempt if the first one fails; returns the first one's failure."""
        failure = self._try_reset(index)
        if failure:
            self.procedure.observer.reset_again(failure)
            if again := self._try_reset(index):
                raise _StackIsGone(f"{again}, at the second attempt, too")
        return failure

    def _try_reset(self, index: int) -> str:
        outcome = self.stimulus.reset(self.attempt(index, is_trial=False))
        if outcome is None or outcome.outcome is OutcomeClass.SUCCESS:
            return ""
        if outcome.outcome is OutcomeClass.STACK_DIED:
            raise _StackIsGone(outcome.message)
        return f"{self.stimulus.not_reset} ({outcome.outcome}: {outcome.message})"

    def warm_up(self, count: int) -> None:
        for number in range(1, count + 1):
            self.procedure.clock.enter(RunPhase.WARM_UP)
            goal, attempt = self.procedure.goals[0], self.attempt(0, is_trial=False)
            in_place = self.stimulus.warm_up_in_place(goal, attempt)
            outcome = in_place or self.stimulus.run(goal, attempt)
            if outcome.outcome is OutcomeClass.STACK_DIED:
                raise _StackIsGone(outcome.message)
            if in_place is None:
                self.reset(0)
            self.procedure.observer.warm_up(number)

    def run(self, until: int, *, is_last: bool) -> None:
        goals = self.procedure.goals
        for index in range(len(self.record.trials), until):
            goal = goals[index % len(goals)]
            trial, attempt, outcome = self.make_trial(goal, index)
            while self.is_to_be_repeated(trial):
                self.procedure.observer.repeat(trial)
                self.repeated.append(trial)
                self.end_trial(self.repeated)
                trial, attempt, outcome = self.make_trial(goal, index)
            self.trials.append(trial)
            self.save(self.snapshot())
            self.procedure.observer.trial(trial)
            self.stimulus.repeat(goal, attempt, outcome)
            is_over = is_last and index + 1 == until and self.rig.stack.info.starts_afresh
            self.end_trial(self.trials, is_reset=not is_over)

    def make_trial(self, goal: StimulusCase, index: int) -> tuple[MotionTrial, Attempt, MotionOutcome]:
        self.procedure.clock.enter(RunPhase.TRIALS)
        attempt = self.attempt(index, is_trial=True)
        with self.outside.measured(attempt.id):
            meter = InterferenceMeter()
            outcome = self.stimulus.run(goal, attempt)
        trial = MotionTrial(
            **vars(outcome),
            index=index,
            goal=goal.name,
            seed=attempt.seed,
            block=self.block,
            interference=meter.measure(),
            content=content_of(goal),
        )
        self.own_pids |= meter.own_pids
        return trial, attempt, outcome

    def is_to_be_repeated(self, trial: MotionTrial) -> bool:
        """True if a successful trial had too much interference and repetitions are left."""
        left = self.spec.trials // TRIALS_PER_REPETITION - len(self.record.repeated) - len(self.repeated)
        return left > 0 and trial.succeeded and trial.interference is not None and trial.interference.is_heavy

    def end_trial(self, trials: list[MotionTrial], *, is_reset: bool = True) -> None:
        """Resets the stack after a trial, and records a failed first attempt in it."""
        trial = trials[-1]
        if trial.outcome is OutcomeClass.STACK_DIED:
            raise _StackIsGone(trial.message)
        if not is_reset:
            return
        self.procedure.clock.enter(RunPhase.HOMING)
        trials[-1] = replace(trial, reset_failure=self.reset(trial.index))

    def take_proofs(self) -> None:
        """Records the proofs of the loads in this block; replaces earlier ones of the same block."""
        proofs = [{**proof_to_dict(load.proof), "block": self.block} for load in self.loads]
        others = [proof for proof in self.record.loads if proof["block"] != self.block]
        self.record = replace(self.record, loads=(*others, *proofs))

    def take_losses(self, discarded_events: int) -> None:
        """Adds the tracer's losses since this stack's start; in a continued block, they replace the record's count."""
        is_continued = any(trial.block == self.block for trial in self.record.trials)
        before = 0 if is_continued else self.record.discarded_events
        self.record = replace(self.record, discarded_events=before + discarded_events)

    def measure(self, recorded: RecordingReport) -> None:
        """Measures the trials; those of an incomplete trace are invalid."""
        if recorded.fault:
            reason = Measurement(Invalid(f"the trace is not whole: {recorded.fault}"))
            distrusted = dict.fromkeys(self.procedure.catalogue, reason)
            self.trials[:] = [replace(trial, measurements=distrusted) for trial in self.trials]
        elif self.trials or self.repeated:
            measured = measure_trials(
                [*self.trials, *self.repeated],
                self.rig,
                self.procedure.paths,
                catalogue=self.procedure.catalogue,
                deadlines=self.spec.deadlines,
                own_pids=self.own_pids,
                scenario=self.spec.name,
                outside=self.outside.found,
            )
            self.trials, self.repeated = measured[: len(self.trials)], measured[len(self.trials) :]

    def take_watch(self) -> None:
        watch = self.procedure.watch
        if watch is not None:
            watch.read(self.rig, len(self.trials) + len(self.repeated))
            self.record = replace(self.record, watched=watch.tools, distortion=watch.distortion)

    def leave_incomplete(self, reason: str) -> None:
        self.record = replace(self.record, incomplete=reason)
        self.save(self.snapshot())

    def snapshot(self) -> TrialSet:
        repeated = (*self.record.repeated, *self.repeated)
        return replace(self.record, trials=(*self.record.trials, *self.trials), repeated=repeated)


@contextmanager
def _measured_at_end(session: _Session, *, is_last: bool) -> Iterator[None]:
    """Takes proofs, reads the trace and saves the record, even after an exception."""
    try:
        yield
    finally:
        session.procedure.clock.enter(RunPhase.READING)
        spans = filter(None, (session.record.surroundings, session.rig.surroundings.lap()))
        session.record = replace(session.record, surroundings=add_up(spans))
        session.take_proofs()
        recorded = session.rig.recorder.pause()
        session.take_losses(recorded.discarded_events)
        session.take_watch()
        session.measure(recorded)
        session.save(session.snapshot())
        if recorded.fault:
            raise trace_not_whole(session.rig.recorder.directory, recorded.fault)
        if not is_last:
            session.rig.recorder.resume()


def new_record(
    rig: Rig,
    spec: ScenarioSpec,
    catalogue: Catalogue = METRICS,
    *,
    commit: tuple[str, str] | None = None,
    watch: Watch | None = None,
) -> TrialSet:
    """Creates a record without trials; `commit` is as of `commit_of`, by default the checkout's."""
    info = rig.stack.info
    versions = {**info.versions, "tracer": rig.recorder.name}
    known, unknown = commit_of(Path.cwd()) if commit is None else commit
    return TrialSet(
        spec=spec,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=known,
        commit_unknown=unknown,
        influences=find_influences(os.environ, our_cpus() | rig.placement.whole) | find_tracers(rig.stack.pids()),
        withheld=find_withheld(os.environ),
        environment=find_settings(os.environ) | find_parameters(rig.stack.all_processes()),
        stack_kind=info.name,
        stack=info.description,
        recorder=rig.recorder.name,
        fingerprint=take_fingerprint(rmw=info.rmw, versions=versions, stack_cpus=rig.placement.describe()),
        other_cpus=describe_cpus(rig.other_cpus),
        trials=(),
        trace=rig.folder.trace.name,
        metrics=tuple(metric.description for metric in catalogue.values()),
        watched="" if watch is None else watch.tools,
        distortion="" if watch is None else watch.distortion,
    )
