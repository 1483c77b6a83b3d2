"""Finds the baseline to compare with, or which of three reasons there is none.

Missing, unreadable and not comparable are different results: the first requires a
recording, the second a repair, the third a new baseline on this host class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.loads import LoadSpec


@dataclass(frozen=True)
class Found:
    """A baseline that this run can be compared with."""

    trials: TrialSet
    file: Path


@dataclass(frozen=True)
class NoBaseline:
    """No baseline has been recorded for this scenario yet."""


@dataclass(frozen=True)
class NotComparable:
    """A baseline exists, but for another host class or under other loads.

    Attributes:
        is_ours: True if it is stored in this run's own place; it is then replaced only on request.
    """

    reason: str
    is_ours: bool = False


@dataclass(frozen=True)
class Unreadable:
    """The baseline's file is damaged."""

    reason: str


_AGAIN: Final = " (record it again: --ldos-update-baseline)"

Lookup = Found | NoBaseline | NotComparable | Unreadable


def find_baseline(stores: BaselineStores, trials: TrialSet) -> Lookup:
    """The baseline for `trials`, or the reason why there is none."""
    key = BaselineKey.of(trials)
    stored = stores.find(key)
    if stored is None:
        others = stores.other_host_classes(key)
        return NotComparable(_describe_foreign(key.host_class, others)) if others else NoBaseline()
    try:
        base = read_trials(stored.file)
    except RecordUnreadable as error:
        return Unreadable(str(error))
    if BaselineKey.of(base) != key:
        found = BaselineKey.of(base)
        return NotComparable(
            f"{stored.file} was recorded for scenario '{found.scenario}' of the {found.stack} stack on host class "
            f"{found.host_class}, this run is scenario '{key.scenario}' of the {key.stack} stack on {key.host_class}"
        )
    unlike = describe_other_loads(trials.spec.loads, base.spec.loads)
    if unlike:
        return NotComparable(f"{stored.file} was measured under other loads: {unlike}{_AGAIN}", is_ours=True)
    return Found(base, stored.file)


def describe_other_loads(head: Sequence[LoadSpec], base: Sequence[LoadSpec]) -> str:
    """Describes how the loads differ, as in ``dds_flood.rate_hz is 2000 here, 1000 there``; empty if they do not."""
    ours, theirs = ({load.KIND: vars(load) for load in loads} for loads in (head, base))
    found: list[str] = []
    for kind in dict.fromkeys([*ours, *theirs]):
        if kind not in ours or kind not in theirs:
            found.append(f"{kind} only {'here' if kind in ours else 'there'}")
            continue
        changed = ((name, here, theirs[kind][name]) for name, here in ours[kind].items())
        found += [
            f"{kind}.{name} is {_shown(here)} here, {_shown(there)} there"
            for name, here, there in changed
            if here != there
        ]
    return ", ".join(found)


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _describe_foreign(host_class: str, others: list[str]) -> str:
    return f"there are baselines of host class {', '.join(others)}, but none of this host's class, {host_class}"
