"""The baseline to compare with, or which of three reasons there is none.

Missing, unreadable and not comparable are different answers: the first asks for a
recording, the second for a repair, the third for a re-baseline on this class of host.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_ldos.baseline.key import BaselineKey
from pytest_ldos.baseline.store import BaselineStores
from pytest_ldos.errors import RecordUnreadable
from pytest_ldos.trial.artifacts import read_trials
from pytest_ldos.trial.record import TrialSet


@dataclass(frozen=True)
class Found:
    """A baseline that can be compared with."""

    trials: TrialSet
    file: Path


@dataclass(frozen=True)
class NoBaseline:
    """Nothing was recorded for this scenario yet."""


@dataclass(frozen=True)
class NotComparable:
    """There is a baseline, but of another class of host."""

    reason: str


@dataclass(frozen=True)
class Unreadable:
    """The baseline's file is damaged."""

    reason: str


Lookup = Found | NoBaseline | NotComparable | Unreadable


def find_baseline(stores: BaselineStores, trials: TrialSet) -> Lookup:
    """What `trials` are to be compared with."""
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
    return Found(base, stored.file)


def _describe_foreign(host_class: str, others: list[str]) -> str:
    return f"there are baselines of host class {', '.join(others)}, but none of this host's class, {host_class}"
