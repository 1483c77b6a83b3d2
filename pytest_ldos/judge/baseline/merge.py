"""Merges trials from several machines of a host class, so that the baseline's noise includes their differences."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.record import Trial, TrialSet

_BLOCK: Final = "block"
"""Key, in the proof of a load, of the stack start in which it was applied."""


def merge_trials(sets: Sequence[TrialSet]) -> TrialSet:
    """All trials of `sets`, renumbered; starts on different machines remain different blocks.

    Raises:
        ConfigurationError: there are fewer than two sets, one is given twice, or they cannot form one baseline.
    """
    if len(sets) < 2:
        names = ", ".join(f"'{each.scenario}' of host class {each.fingerprint.host_class}" for each in sets)
        raise ConfigurationError(
            f"there is only one run of {names or 'nothing'}: nothing to merge", remedy="name those of several machines"
        )
    first, *others = ordered = sorted(sets, key=lambda each: (each.started_at, each.fingerprint.hostname))
    for other in others:
        _require_alike(first, other)
    trials, loads = join_trials(ordered)
    if len({trial.identity for trial in trials}) < len(trials):
        raise ConfigurationError("the same trials are there twice", remedy="name each run once")
    return dataclasses.replace(
        first,
        spec=dataclasses.replace(first.spec, trials=sum(each.spec.trials for each in ordered)),
        stack=_joined(each.stack for each in ordered),
        recorder=_joined(each.recorder for each in ordered),
        fingerprint=_merge_fingerprints([each.fingerprint for each in ordered]),
        trials=trials,
        loads=loads,
        discarded_events=sum(each.discarded_events for each in ordered),
        incomplete=_joined(each.incomplete for each in ordered if each.incomplete),
        trace="",
        looks=(),
        last_look=None,
        session="",
    )


def join_trials(sets: Iterable[TrialSet]) -> tuple[tuple[Trial, ...], tuple[Mapping[str, object], ...]]:
    """Trials and loads of all sets, renumbered; starts of different sets remain different blocks."""
    apart = [*_apart(sets)]
    trials = (trial for each in apart for trial in each.trials)
    numbered = tuple(dataclasses.replace(trial, index=index) for index, trial in enumerate(trials))
    return numbered, tuple(load for each in apart for load in each.loads)


def _require_alike(first: TrialSet, other: TrialSet) -> None:
    for what, wrong in _reasons(first, other):
        if wrong:
            raise ConfigurationError(
                f"runs of '{first.scenario}' cannot be one baseline: {what}",
                remedy="measure one commit with the same settings on all machines of a class",
            )


def _reasons(first: TrialSet, other: TrialSet) -> Iterator[tuple[str, bool]]:
    machines = f"{first.fingerprint.hostname} and {other.fingerprint.hostname}"
    one, two = BaselineKey.of(first), BaselineKey.of(other)
    settings = [dataclasses.replace(each.spec, trials=1) for each in (first, other)]
    yield f"{machines} have {one} and {two}", one != two
    yield (
        f"{machines} measured commits {first.commit or 'unknown'} and {other.commit or 'unknown'}",
        (first.commit != other.commit),
    )
    yield f"{machines} had different settings or loads", settings[0] != settings[1]
    yield f"{machines} took different metrics", first.metrics != other.metrics
    yield f"trials of {machines} were watched", bool(first.watched or other.watched)


def _apart(sets: Iterable[TrialSet]) -> Iterator[TrialSet]:
    """Renumbers the blocks of trials and loads, so that those of each set follow those of the sets before it."""
    first_block = 0
    for each in sets:
        of_loads = {found for load in each.loads if isinstance(found := load.get(_BLOCK), int)}
        blocks = sorted({trial.block for trial in each.trials} | of_loads)
        places = {block: first_block + place for place, block in enumerate(blocks)}
        yield dataclasses.replace(
            each,
            trials=tuple(dataclasses.replace(trial, block=places[trial.block]) for trial in each.trials),
            loads=tuple(_renumber(load, places) for load in each.loads),
        )
        first_block += len(blocks)


def _renumber(load: Mapping[str, object], places: Mapping[int, int]) -> Mapping[str, object]:
    block = load.get(_BLOCK)
    return {**load, _BLOCK: places[block]} if isinstance(block, int) else load


def _merge_fingerprints(found: Sequence[Fingerprint]) -> Fingerprint:
    """One fingerprint for machines of the same class; properties that differ are listed for all machines."""
    names = sorted({name for each in found for name in each.versions})
    return dataclasses.replace(
        found[0],
        hostname=_joined(each.hostname for each in found),
        kernel=_joined(each.kernel for each in found),
        versions={name: _joined(each.versions.get(name, "absent") for each in found) for name in names},
    )


def _joined(texts: Iterable[str]) -> str:
    return " + ".join(dict.fromkeys(texts))
