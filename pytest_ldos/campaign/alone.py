"""Trials of head alone in several stack starts; more starts until a comparison with a stored baseline is clear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pytest_ldos.campaign.blocks import Bench, run_block
from pytest_ldos.campaign.order import Block, Role, blocks_alone, usual_size_alone
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.judge.gate.decide import GateResult
from pytest_ldos.measure.trial.artifacts import write_trials
from pytest_ldos.measure.trial.conduct import why_ended
from pytest_ldos.measure.trial.record import Look, TrialSet


class StoredBase(NamedTuple):
    """A stored baseline: its number of trials, and the comparison of a head with it."""

    trials: int
    decide: Callable[[TrialSet], GateResult]


FindBase = Callable[[TrialSet], StoredBase | None]
"""Finds the baseline of a head's trials; ``None`` if there is none to compare with."""


def measure_alone(bench: Bench, head: Version, *, find_base: FindBase, size: int | None = None) -> TrialSet:
    """Measures one version, and adds starts while its comparison is undecided and the scenario allows more trials.

    After each trial the record is on disk; if it ends early, it contains the reason as `incomplete`.

    Args:
        size: trials of a block, by default the `usual_size_alone`.

    Raises:
        LdosError: a stack or a load did not start.
    """
    record = _run(bench, head, blocks_alone(bench.spec.trials, size=size), None)
    base = find_base(record)
    most = bench.spec.max_trials
    if base is None or len(record.trials) >= most:
        return record
    record = _looked(bench, record, base)
    while len(record.trials) < most and not record.incomplete and base.decide(record).more_trials_because:
        record = _looked(bench, _run(bench, head, [_next_block(record, size or usual_size_alone(most))], record), base)
    return record


def _run(bench: Bench, head: Version, blocks: Sequence[Block], record: TrialSet | None) -> TrialSet:
    """Runs blocks until a stack dies."""
    save = partial(write_trials, bench.folder)
    for block in blocks:
        try:
            record = run_block(bench, block, head, record, save)
        except BaseException as reason:
            if record is not None:
                save(replace(record, incomplete=record.incomplete or why_ended(reason)))
            raise
        if record.incomplete:
            break
    assert record is not None
    return record


def _next_block(record: TrialSet, size: int) -> Block:
    made = len(record.trials)
    return Block(record.trials[-1].block + 1, Role.HEAD, range(made, min(made + size, record.spec.max_trials)))


def _looked(bench: Bench, record: TrialSet, base: StoredBase) -> TrialSet:
    now, last = Look(len(record.trials), base.trials), Look(record.spec.max_trials, base.trials)
    noted = replace(record, looks=(*record.looks, now), last_look=last)
    write_trials(bench.folder, noted)
    return noted
