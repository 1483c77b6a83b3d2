"""Locates the baseline of a set of trials: by stack, host class and scenario."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.measure.trial.record import TrialSet

SUFFIX: Final = ".json"
PINNED_SUFFIX: Final = ".pinned.json"
CALIBRATION_SUFFIX: Final = ".calibration.json"


def contained(name: str) -> str:
    """A name made safe as a single file or folder name: no separators, not hidden."""
    return re.sub(r"^\.+|[/\0]", "_", name) or "_"


@dataclass(frozen=True)
class BaselineKey:
    """Path of a baseline within a store: ``<stack>/<host class>/<scenario>.json``."""

    stack: str
    host_class: str
    scenario: str

    @classmethod
    def of(cls, trials: TrialSet) -> BaselineKey:
        return cls(trials.stack_kind, trials.fingerprint.host_class, trials.scenario)

    def file(self, store: Path, *, pinned: bool = False) -> Path:
        return self._beside(store, PINNED_SUFFIX if pinned else SUFFIX)

    def calibration_file(self, store: Path) -> Path:
        """Path of the host's calibration, beside the baseline."""
        return self._beside(store, CALIBRATION_SUFFIX)

    def _beside(self, store: Path, suffix: str) -> Path:
        return store / contained(self.stack) / contained(self.host_class) / f"{contained(self.scenario)}{suffix}"
