"""Sessions of blocks: of head alone, or of two versions interleaved until the comparison is clear."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import NamedTuple

from pytest_ldos.base.errors import BringUpFailed, ProfilingFailed
from pytest_ldos.base.ros2 import BUILT_IN_PATHS, PathSpec
from pytest_ldos.base.text import counted, describe_duration, without_logs
from pytest_ldos.campaign.order import Block, Role, blocks_alone, first_blocks, next_pairs, usual_size_alone
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.host.interference import Interference, describe_interference
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.measure.load.protocol import LoadSite, RepeatedLoad, RunningLoad
from pytest_ldos.measure.metrics.catalogue import METRICS, Catalogue
from pytest_ldos.measure.metrics.declared import declared_in
from pytest_ldos.measure.metrics.own_events import recorded_for
from pytest_ldos.measure.trial import rig
from pytest_ldos.measure.trial.artifacts import (
    ScenarioFolder,
    drop_traces,
    keep_failed_block,
    new_block_folder,
    write_trials,
)
from pytest_ldos.measure.trial.conduct import Observer, Procedure, Save, add_trials, new_record, why_ended
from pytest_ldos.measure.trial.record import Look, MotionTrial, Trial, TrialSet
from pytest_ldos.measure.trial.rig import Durations, PhaseClock, Rig, Spent, Watch, clocked, describe_durations
from pytest_ldos.robot.stack.problems import count_problems
from pytest_ldos.robot.stack.protocol import StimulusCase
from pytest_ldos.scenario.model import ScenarioSpec


class BlockObserver(Observer):
    def block(self, block: Block, version: Version) -> None:
        """The stack of a block is being started."""

    def waiting(self, what: str) -> None:
        """The stack is still waiting for a condition."""

    def note(self, text: str) -> None:
        """Prints a line that stays."""


class BlockNotes(BlockObserver):
    """Prints notes on what disturbs trials; a subclass adds its own progress, and `note`."""

    def surroundings(self, found: Interference) -> None:
        if text := describe_interference(found):
            self.note(f"{text} (before the first trial)")

    def repeat(self, trial: MotionTrial) -> None:
        self.note(f"trial {trial.index + 1} is made again: {describe_interference(trial.interference)}")

    def reset_again(self, failure: str) -> None:
        self.note(f"{failure}; trying again")


def reason_of(trial: Trial) -> str:
    """The first line on why a trial failed."""
    return (trial.message or "no reason given").splitlines()[0]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Settings shared by all blocks and versions of a session.

    Attributes:
        goals: name of a goal set, or goals.
        loads: applied in each block, once its stack is warm.
        open_rig: starts a stack and its recording.
        watch: returns the additional observation of a version, if any.
        clock: sums the time of each phase over all blocks.
    """

    spec: ScenarioSpec
    folder: ScenarioFolder
    goals: Sequence[StimulusCase] | str
    observer: BlockObserver
    loads: Sequence[RepeatedLoad] = ()
    paths: Sequence[PathSpec] = BUILT_IN_PATHS
    catalogue: Catalogue = field(default_factory=lambda: METRICS)
    open_rig: Callable[..., AbstractContextManager[Rig]] = field(default_factory=lambda: rig.open_rig)
    watch: Callable[[Role], Watch | None] = lambda role: None
    clock: PhaseClock = field(default_factory=PhaseClock)


def run_block(bench: Bench, block: Block, version: Version, record: TrialSet | None, save: Save) -> TrialSet:
    """Runs a block; returns the version's record (``None`` before its first block) with the new trials.

    Raises `BringUpFailed`, which names the version, or as `open_rig` and `RepeatedLoad.applied_to`.
    """
    bench.observer.block(block, version)
    with ExitStack() as resources:
        rig = resources.enter_context(_started(bench, block, version))
        watch = bench.watch(block.role)
        procedure = Procedure(
            goals=rig.stack.stimulus.cases(bench.goals) if isinstance(bench.goals, str) else bench.goals,
            catalogue=bench.catalogue,
            disturb=lambda: _beside(bench.loads, replace(rig.site, paths=bench.paths)),
            paths=bench.paths,
            observer=bench.observer,
            watch=watch,
            clock=bench.clock,
            is_under_test=block.role is Role.HEAD,
        )
        return add_trials(
            rig,
            record
            or new_record(
                rig, bench.spec, bench.catalogue, commit=(version.commit, version.commit_unknown), watch=watch
            ),
            procedure,
            until=block.trials.stop,
            warmup=bench.spec.warmup,
            save=save,
            block=block.number,
            is_last=True,
        )


@contextmanager
def _beside(loads: Sequence[RepeatedLoad], site: LoadSite) -> Iterator[list[RunningLoad]]:
    with ExitStack() as resources:
        yield [resources.enter_context(load.applied_to(site)) for load in loads]


@contextmanager
def _started(bench: Bench, block: Block, version: Version) -> Iterator[Rig]:
    """Starts the version's stack with its recording; except for the first block, errors name version and block."""
    folder = _folder_of(bench, block)
    with ExitStack() as resources:
        try:
            opened = bench.open_rig(
                bench.spec.stack,
                folder,
                on_waiting=bench.observer.waiting,
                installation=version.installation,
                events=recorded_for(declared_in(bench.catalogue.values())),
            )
            rig = resources.enter_context(clocked(opened, bench.clock))
        except BringUpFailed as error:
            if folder is bench.folder:
                raise
            message = f"{version.name}, block {block.number + 1}: {error.message}"
            raise BringUpFailed(message, details=error.details, remedy=error.remedy) from None
        yield rig


def _folder_of(bench: Bench, block: Block) -> ScenarioFolder:
    """The scenario's own folder for the first start of head alone (as in earlier versions), or a block's folder."""
    is_first_alone = block.number == 0 and block.role is Role.HEAD
    return bench.folder if is_first_alone else new_block_folder(bench.folder, block.number, block.role)


class StoredBase(NamedTuple):
    trials: int
    decide: Callable[[TrialSet], GateResult]


def measure_alone(
    bench: Bench, head: Version, *, find_base: Callable[[TrialSet], StoredBase | None], size: int | None = None
) -> TrialSet:
    """Measures one version; adds starts while its comparison is inconclusive and more trials are allowed.

    The record is written after each trial; after an early end, it has the reason as `incomplete`.
    """
    session = _Session(bench, {Role.HEAD: head}, identity="")
    problems, most = _count_problems(bench), bench.spec.max_trials
    session.run(blocks_alone(bench.spec.trials, size=size, problems=problems))
    record = session.records[Role.HEAD]
    base = find_base(record)
    if base is None or len(record.trials) >= most:
        return record
    while True:
        session.note_look(Look(len(record.trials), base.trials), Look(most, base.trials))
        record = session.records[Role.HEAD]
        if len(record.trials) >= most or session.is_over or not base.decide(record).more_trials_because:
            return record
        stop = min(len(record.trials) + (size or usual_size_alone(most, problems)), most)
        session.run([Block(record.trials[-1].block + 1, Role.HEAD, range(len(record.trials), stop))])
        record = session.records[Role.HEAD]


def _count_problems(bench: Bench) -> int:
    """Planning problems of a trial set, or 1; notes if there are fewer trials than problems."""
    problems, trials = count_problems(bench.spec, bench.goals), bench.spec.trials
    if trials < problems:
        bench.observer.note(f"{trials} of {problems} problems are planned; more trials plan all (--ldos-trials)")
    return problems


Decide = Callable[[TrialSet, TrialSet], GateResult]


@dataclass(frozen=True, kw_only=True)
class Interleaved:
    """Result of a session, whose id both records contain; its phases exclude interim looks."""

    bench: Bench
    head: TrialSet
    base: TrialSet
    versions: Mapping[Role, Version]
    starts: int
    seconds: float
    durations: Durations
    failed_starts: Collection[str] = ()


def interleave(
    bench: Bench, versions: Mapping[Role, Version], *, decide: Decide, size: int | None = None
) -> Interleaved:
    """Measures two versions interleaved until the comparison is conclusive or the trials are spent.

    Both versions run the same trials (goals, seeds, starts). Both records are written after each trial; after an early
    end, they have the reason as `incomplete`. They are compared when both have equally many trials, from the requested
    number on.
    """
    began_s, earlier = time.monotonic(), dict(bench.clock.durations)
    session = _Session(bench, versions, identity=secrets.token_hex(8))
    problems = _count_problems(bench)
    blocks = first_blocks(bench.spec.trials, size=size, problems=problems)
    starts = 0
    while blocks:
        starts += session.run(blocks)
        goes_on = not session.is_over and session.look(decide)
        blocks = next_pairs(blocks[-1], size=size, limit=bench.spec.max_trials, problems=problems) if goes_on else []
    head, base = session.both()
    return Interleaved(
        bench=bench,
        head=head,
        base=base,
        versions=versions,
        starts=starts,
        seconds=time.monotonic() - began_s,
        durations={phase: spent - earlier.get(phase, Spent()) for phase, spent in bench.clock.durations.items()},
        failed_starts=session.failed_starts.values(),
    )


def profile_again(
    made: Interleaved, pairs: int, watch: Callable[[Role], Watch | None], announce: Callable[[str], None]
) -> None:
    """Profiles trials of more starts, without records; raises `ProfilingFailed` if a stack dies, or as `run_block`."""
    measured = len(made.head.trials) + len(made.base.trials)
    trials = range(max(4, ceil(measured / made.starts)))  # a block of the session may plan each problem once
    duration = describe_duration(made.seconds * len(Role) * pairs * len(trials) / measured)
    starts = counted(pairs, "more start")
    announce(f"regressed: profiling {starts} of each version to find the cause, about {duration} (--ldos-evidence)")
    spec = replace(made.bench.spec, trials=len(trials), max_trials=0, deadlines=())
    folder = ScenarioFolder(made.bench.folder.path / "profiled")
    bench = replace(made.bench, spec=spec, folder=folder, catalogue={}, watch=watch, clock=PhaseClock())
    try:
        for block in first_blocks(pairs, size=1):
            version, again = made.versions[block.role], replace(block, trials=trials)
            if reason := run_block(bench, again, version, None, lambda record: None).incomplete:
                raise ProfilingFailed(f"{version.name}: {reason}")
    finally:
        drop_traces(folder)


def describe_turns(made: Interleaved) -> str:
    """Base, trials, starts and duration of a session; notes if both versions are the same."""
    head, base = (made.versions[role] for role in (Role.HEAD, Role.BASE))
    turns = f"interleaved with {counted(len(made.base.trials), 'trial')} of {base.name}"
    cost = f"{made.starts} stack starts in {made.seconds:.0f} s ({describe_durations(made.durations, made.seconds)})"
    cost = "; ".join([cost, *(f"a start was made again: {each}" for each in made.failed_starts)])
    if not head.is_same(base):
        return f"{turns}; {cost}"
    is_build = head.packages is not None and not head.is_same_commit(base)
    what = "one build, because their workspaces are equal" if is_build else "the same version"
    return f"{turns}; {cost}; A/A: head and base are {what}"


@dataclass
class _Session:
    bench: Bench
    versions: Mapping[Role, Version]
    identity: str
    records: dict[Role, TrialSet] = field(default_factory=dict)
    failed_starts: dict[Role, str] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return any(record.incomplete for record in self.records.values())

    def run(self, blocks: Sequence[Block]) -> int:
        """Runs blocks until a stack dies; returns the number of blocks that were started."""
        for number, block in enumerate(blocks, start=1):
            try:
                self.forgive_start(block)
            except BaseException as reason:
                self.end_early(why_ended(reason))
                raise
            if self.is_over:
                return number
        return len(blocks)

    def forgive_start(self, block: Block) -> None:
        """Runs a block; one failed start of a version that started before is made again, and its logs are kept."""
        try:
            self.run_block(block)
        except BringUpFailed as error:
            if block.role not in self.records or block.role in self.failed_starts:
                raise
            self.failed_starts[block.role] = reason = without_logs(error.message)
            self.bench.observer.reset_again(reason)
            keep_failed_block(self.bench.folder, block.number, block.role)
            self.run_block(block)

    def run_block(self, block: Block) -> None:
        version = self.versions[block.role]
        save = partial(self.save, block.role)
        record = run_block(self.bench, block, version, self.records.get(block.role), save)
        save(record)
        if record.incomplete:
            self.end_early(f"{version.name}: {record.incomplete}")

    def look(self, decide: Decide) -> bool:
        """Records a look if more trials are possible; returns True if more are required."""
        most = self.bench.spec.max_trials
        if most <= self.bench.spec.trials:
            return False
        self.note_look(Look(*(len(record.trials) for record in self.both())), Look(most, most))
        return bool(decide(*self.both()).more_trials_because)

    def note_look(self, now: Look, last: Look) -> None:
        for role, record in self.records.items():
            self.save(role, replace(record, looks=(*record.looks, now), last_look=last))

    def end_early(self, reason: str) -> None:
        for role, record in self.records.items():
            if not record.incomplete:
                self.save(role, replace(record, incomplete=reason))

    def save(self, role: Role, record: TrialSet) -> None:
        self.records[role] = replace(record, session=self.identity)
        write_trials(self.bench.folder if role is Role.HEAD else self.bench.folder.base, self.records[role])

    def both(self) -> tuple[TrialSet, TrialSet]:
        """Head's and base's record; raises `BringUpFailed` if the session ended before both versions had one."""
        for role, version in self.versions.items():
            if role not in self.records:
                others = (f"{self.versions[each].name}: {record.incomplete}" for each, record in self.records.items())
                raise BringUpFailed(f"{version.name} was not measured, because of {'; '.join(others)}")
        return self.records[Role.HEAD], self.records[Role.BASE]
