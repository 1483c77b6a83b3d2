"""Finds the baseline and the calibration that apply to a run.

Missing, unreadable and not comparable are different results: the first requires a recording, the second a repair, and
the third a new baseline for this host class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.judge.baseline.calibration import Calibration, MetricNoise, decode_calibration, encode_calibration
from pytest_ldos.judge.baseline.key import (
    CALIBRATION_SUFFIX,
    BaselineKey,
    OtherHost,
    OtherHostClasses,
    OtherLoads,
    OtherScenario,
    find_load_differences,
)
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.record import TrialSet


@dataclass(frozen=True)
class Found:
    """A baseline that this run can be compared with."""

    trials: TrialSet
    file: Path


@dataclass(frozen=True)
class NotComparable:
    """A baseline exists, but for another host class or under other loads.

    Attributes:
        is_ours: True if it is stored under this run's own key; it is then replaced only on request.
        shown: trials whose numbers are shown all the same; ``None`` if there are none.
    """

    reason: OtherHost | OtherHostClasses | OtherScenario | OtherLoads
    is_ours: bool = False
    shown: Found | None = None


@dataclass(frozen=True)
class Unreadable:
    """The baseline's file is damaged."""

    reason: str


@dataclass(frozen=True)
class NoBaseline:
    """No baseline has been recorded for this scenario yet.

    Attributes:
        shared: the repository's baseline of this host class, recorded by another machine. It is shown, but not judged
            by; ``None`` if there is none.
    """

    shared: Found | NotComparable | Unreadable | None = None


Lookup = Found | NoBaseline | NotComparable | Unreadable


def shown_baseline(lookup: Lookup) -> Found | None:
    """The baseline whose numbers are shown: the one judged by, the shared one, or one that is not comparable."""
    found = lookup.shared if isinstance(lookup, NoBaseline) else lookup
    if isinstance(found, NotComparable):
        return found.shown
    return found if isinstance(found, Found) else None


def compare_with(head: TrialSet, base: TrialSet, file: Path) -> Found | NotComparable:
    """Saved trials as a base, if they are of the same stack and host class and were measured under the same loads.

    Args:
        file: location of the base.
    """
    here, there = BaselineKey.of(head), BaselineKey.of(base)
    if here.place != there.place:
        return NotComparable(OtherHost(here, there))
    unlike = tuple(find_load_differences(head.spec.loads, base.spec.loads))
    return NotComparable(OtherLoads(file, unlike), is_ours=True) if unlike else Found(base, file)


def find_baseline(stores: BaselineStores, trials: TrialSet) -> Lookup:
    """The baseline for `trials`, or the reason why there is none."""
    key = BaselineKey.of(trials)
    stored = stores.find(key)
    if stored is None:
        others = stores.other_host_classes(key)
        shared = stores.find_shared(key)
        if others and shared is None:
            return NotComparable(OtherHostClasses(key, tuple(others)))
        return NoBaseline(None if shared is None else _read_for(shared, trials))
    return _read_for(stored.file, trials)


def _read_for(file: Path, trials: TrialSet) -> Found | NotComparable | Unreadable:
    key = BaselineKey.of(trials)
    try:
        base = read_trials(file)
    except RecordUnreadable as error:
        return Unreadable(str(error))
    if BaselineKey.of(base) != key:
        return NotComparable(OtherScenario(file, key, BaselineKey.of(base)))
    return compare_with(trials, base, file)


@dataclass(frozen=True)
class Calibrated:
    """The noise of this host class is known."""

    calibration: Calibration
    file: Path

    @property
    def noise(self) -> Mapping[str, MetricNoise]:
        return self.calibration.metrics


@dataclass(frozen=True)
class Uncalibrated:
    """No calibration applies to this host class.

    Attributes:
        other: a calibration that exists but does not apply; ``None`` if there is none.
    """

    other: OtherHostClasses | OtherScenario | None = None


@dataclass(frozen=True)
class UnreadableCalibration:
    """A calibration exists but cannot be read."""

    reason: str


CalibrationLookup = Calibrated | Uncalibrated | UnreadableCalibration


def find_calibration(stores: BaselineStores, trials: TrialSet) -> CalibrationLookup:
    """The calibration for `trials`: same stack, same host class, same scenario."""
    return find_calibration_of(stores, BaselineKey.of(trials))


def find_calibration_of(stores: BaselineStores, key: BaselineKey) -> CalibrationLookup:
    """The calibration for a key; the repository's store takes precedence over the local store."""
    file = next((each for each in _places(stores, key) if each.is_file()), None)
    if file is None:
        others = stores.other_host_classes(key, CALIBRATION_SUFFIX)
        return Uncalibrated(OtherHostClasses(key, tuple(others)) if others else None)
    try:
        calibration = decode_calibration(file.read_text("utf-8", errors="replace"), file)
    except RecordUnreadable as error:
        return UnreadableCalibration(error.summary)
    except OSError as error:
        return UnreadableCalibration(f"{file} cannot be read: {error.strerror}")
    found = BaselineKey.of(calibration)
    if found != key:
        return Uncalibrated(OtherScenario(file, key, found))
    return Calibrated(calibration, file)


def save_calibration(stores: BaselineStores, calibration: Calibration, *, to_repository: bool = False) -> Path:
    """Stores a calibration where one already exists, or else in the requested store."""
    key = BaselineKey.of(calibration)
    repository, local = _places(stores, key)
    file = repository if to_repository or repository.is_file() else local
    write_atomically(file, encode_calibration(calibration))
    return file


def _places(stores: BaselineStores, key: BaselineKey) -> tuple[Path, Path]:
    return key.calibration_file(stores.repository), key.calibration_file(stores.local)
