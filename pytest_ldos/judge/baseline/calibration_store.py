"""Stores calibrations beside the baselines and finds the one that applies to a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ldos.base.errors import RecordUnreadable
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.judge.baseline.calibration import Calibration, MetricNoise
from pytest_ldos.judge.baseline.calibration_codec import decode_calibration, encode_calibration
from pytest_ldos.judge.baseline.key import CALIBRATION_SUFFIX, BaselineKey
from pytest_ldos.judge.baseline.mismatch import OtherHostClasses, OtherScenario
from pytest_ldos.judge.baseline.store import BaselineStores
from pytest_ldos.measure.trial.record import TrialSet


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
    """The calibration for a key; the repository's store takes precedence over the local one."""
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
    """Stores a calibration where one already exists, or in the store that was asked for."""
    key = BaselineKey.of(calibration)
    repository, local = _places(stores, key)
    file = repository if to_repository or repository.is_file() else local
    write_atomically(file, encode_calibration(calibration))
    return file


def _places(stores: BaselineStores, key: BaselineKey) -> tuple[Path, Path]:
    return key.calibration_file(stores.repository), key.calibration_file(stores.local)
