"""Interleaved session of two versions: blocks, a look at the comparison, and more blocks until it is clear."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pytest_ldos.base.errors import BringUpFailed
from pytest_ldos.base.units import counted
from pytest_ldos.campaign.blocks import Bench, run_block
from pytest_ldos.campaign.order import Block, Role, first_blocks, next_pairs
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.measure.trial.artifacts import write_trials
from pytest_ldos.measure.trial.conduct import why_ended
from pytest_ldos.measure.trial.phases import Durations, describe_durations
from pytest_ldos.measure.trial.record import Look, TrialSet

Decide = Callable[[TrialSet, TrialSet], GateResult]
"""Compares head and base."""


@dataclass(frozen=True, kw_only=True)
class Interleaved:
    """Result of a session.

    Attributes:
        head, base: trials of each version; both contain the id of the session.
        versions: the versions they were measured on.
        starts: number of stack starts.
        seconds: duration of the session.
        durations: of its phases; less than the whole, because looks at the comparison are no phase.
    """

    head: TrialSet
    base: TrialSet
    versions: Mapping[Role, Version]
    starts: int
    seconds: float
    durations: Durations


def interleave(
    bench: Bench, versions: Mapping[Role, Version], *, decide: Decide, size: int | None = None
) -> Interleaved:
    """Measures two versions interleaved, until the comparison is clear or the largest number of trials is reached.

    Both versions make the same trials: goals, seeds and starts are equal. After each trial both
    records are on disk; if the session ends early, they contain the reason as `incomplete`.

    A session takes no longer than the trials of both versions and one start per block. A start includes the
    block's warm-up trial (see `Bench.warmup`), because a stack that has just started is not what is measured.

    Args:
        decide: called whenever both versions have equally many trials, from the requested number of
            trials on.
        size: trials of a block; see `first_blocks` and `next_pairs` for the default.

    Raises:
        LdosError: a stack or a load did not start.
    """
    began_s = time.monotonic()
    session = _Session(bench, versions)
    blocks = first_blocks(bench.spec.trials, size=size)
    starts = 0
    while blocks:
        starts += session.run(blocks)
        goes_on = not session.is_over and session.look(decide)
        blocks = next_pairs(blocks[-1], size=size, limit=bench.spec.max_trials) if goes_on else []
    head, base = session.both()
    seconds = time.monotonic() - began_s
    return Interleaved(
        head=head, base=base, versions=versions, starts=starts, seconds=seconds, durations=dict(bench.clock.durations)
    )


def describe_turns(made: Interleaved) -> str:
    """Describes the interleaving: base, trials, starts and duration; notes if both versions are the same."""
    head, base = (made.versions[role] for role in (Role.HEAD, Role.BASE))
    turns = f"interleaved with {counted(len(made.base.trials), 'trial')} of {base.name}"
    cost = f"{made.starts} stack starts in {made.seconds:.0f} s ({describe_durations(made.durations)})"
    if not head.is_same(base):
        return f"{turns}; {cost}"
    is_build = head.packages is not None and not head.is_same_commit(base)
    what = "one build, because their workspaces are equal" if is_build else "the same version"
    return f"{turns}; {cost}; A/A: head and base are {what}"


@dataclass
class _Session:
    """A session in progress.

    Attributes:
        records: as last saved.
    """

    bench: Bench
    versions: Mapping[Role, Version]
    identity: str = field(default_factory=lambda: secrets.token_hex(8))
    records: dict[Role, TrialSet] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return any(record.incomplete for record in self.records.values())

    def run(self, blocks: Sequence[Block]) -> int:
        """Runs blocks until a stack dies; returns the number of blocks that were started."""
        for number, block in enumerate(blocks, start=1):
            try:
                self.run_block(block)
            except BaseException as reason:
                self.end_early(why_ended(reason))
                raise
            if self.is_over:
                return number
        return len(blocks)

    def run_block(self, block: Block) -> None:
        version = self.versions[block.role]
        save = partial(self.save, block.role)
        record = run_block(self.bench, block, version, self.records.get(block.role), save)
        save(record)
        if record.incomplete:
            self.end_early(f"{version.name}: {record.incomplete}")

    def look(self, decide: Decide) -> bool:
        """Records a look if more trials are possible; returns True if they are to be made."""
        most = self.bench.spec.max_trials
        if most <= self.bench.spec.trials:
            return False
        now = Look(*(len(record.trials) for record in self.both()))
        for role, record in self.records.items():
            self.save(role, replace(record, looks=(*record.looks, now), last_look=Look(most, most)))
        return bool(decide(*self.both()).more_trials_because)

    def end_early(self, reason: str) -> None:
        """Stores in both records why the remaining trials were not made."""
        for role, record in self.records.items():
            if not record.incomplete:
                self.save(role, replace(record, incomplete=reason))

    def save(self, role: Role, record: TrialSet) -> None:
        self.records[role] = replace(record, session=self.identity)
        write_trials(self.bench.folder if role is Role.HEAD else self.bench.folder.base, self.records[role])

    def both(self) -> tuple[TrialSet, TrialSet]:
        """Returns head's and base's record.

        Raises:
            BringUpFailed: the session ended before both versions had a record.
        """
        for role, version in self.versions.items():
            if role not in self.records:
                others = (f"{self.versions[each].name}: {record.incomplete}" for each, record in self.records.items())
                raise BringUpFailed(f"{version.name} was not measured, because of {'; '.join(others)}")
        return self.records[Role.HEAD], self.records[Role.BASE]
