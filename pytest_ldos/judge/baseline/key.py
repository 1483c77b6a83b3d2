"""Locates the baseline of a set of trials, and says why a stored one does not apply.

Calibrations, starts of searches and histories have the same key. Its fields are listed here and in a history's columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from glob import escape
from pathlib import Path
from typing import Any, Final

from pytest_ldos.judge.baseline.calibration import Calibration
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.loads import LoadSpec

SUFFIX: Final = ".json"
PINNED_SUFFIX: Final = ".pinned.json"
CALIBRATION_SUFFIX: Final = ".calibration.json"


def contained(name: str) -> str:
    """A name made safe as a single file or folder name: no separators, not hidden."""
    return re.sub(r"^\.+|[/\0]", "_", name) or "_"


@dataclass(frozen=True, order=True)
class BaselineKey:
    """Path of a baseline within a store: ``<stack>/<host class>/<scenario>.json``."""

    stack: str
    host_class: str
    scenario: str

    @classmethod
    def of(cls, measured: TrialSet | Calibration) -> BaselineKey:
        return cls(measured.stack_kind, measured.fingerprint.host_class, measured.scenario)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> BaselineKey:
        """The key in the columns of a history."""
        return cls(**{name: row[name] for name in KEY_COLUMNS})

    @classmethod
    def of_file(cls, file: Path, suffix: str) -> BaselineKey:
        """The key of a baseline, by its path."""
        parts = (*file.parent.parts, file.name.removesuffix(suffix))
        return cls(*parts[-len(KEY_COLUMNS) :])

    @property
    def place(self) -> BaselineKey:
        """The key without its scenario: stack and host class."""
        return replace(self, scenario="")

    def folder(self, store: Path) -> Path:
        """A folder of its own."""
        return store.joinpath(*map(contained, asdict(self).values()))

    def file(self, store: Path, *, pinned: bool = False) -> Path:
        return self._sibling(store, PINNED_SUFFIX if pinned else SUFFIX)

    def calibration_file(self, store: Path) -> Path:
        """Path of the host's calibration, next to the baseline."""
        return self._sibling(store, CALIBRATION_SUFFIX)

    def of_other_host_classes(self, stores: Iterable[Path], suffix: str) -> set[str]:
        """All host classes, including this one, that have such a file for the same stack and scenario."""
        parts = ("*" if name == "host_class" else escape(contained(part)) for name, part in asdict(self).items())
        pattern = f"{'/'.join(parts)}{suffix}"
        files = (file for store in stores for file in store.glob(pattern))
        return {self.of_file(file, suffix).host_class for file in files}

    def _sibling(self, store: Path, suffix: str) -> Path:
        folder = self.folder(store)
        return folder.with_name(f"{folder.name}{suffix}")


ANY_FILE: Final = "/".join("*" for _ in fields(BaselineKey)) + SUFFIX
"""Pattern of all files of a store."""

KEY_COLUMNS: Final = tuple(each.name for each in fields(BaselineKey))
"""Names of the fields, which are also columns of a history."""


@dataclass(frozen=True)
class OtherHostClasses:
    """Only other host classes have such a file."""

    here: BaselineKey
    others: tuple[str, ...]


@dataclass(frozen=True)
class OtherHost:
    """Two saved results are of different host classes or stacks."""

    here: BaselineKey
    there: BaselineKey


@dataclass(frozen=True)
class OtherScenario:
    """The file's content belongs to another scenario, stack or host class than its path says."""

    file: Path
    here: BaselineKey
    there: BaselineKey


@dataclass(frozen=True)
class LoadDifference:
    """A setting of a load, or a whole load, that differs.

    Attributes:
        name: ``KIND``, or ``KIND.SETTING``.
        here, there: the values; ``None`` on the side that does not have the load.
    """

    name: str
    here: object | None
    there: object | None


@dataclass(frozen=True)
class OtherLoads:
    """The file was measured under other loads."""

    file: Path
    differences: tuple[LoadDifference, ...]


def find_load_differences(head: Sequence[LoadSpec], base: Sequence[LoadSpec]) -> Iterator[LoadDifference]:
    """Settings of loads that differ; a load that only one side has is one difference."""
    ours, theirs = ({load.KIND: vars(load) for load in loads} for loads in (head, base))
    for kind in dict.fromkeys([*ours, *theirs]):
        if kind not in ours or kind not in theirs:
            yield LoadDifference(kind, ours.get(kind), theirs.get(kind))
            continue
        for name, here in ours[kind].items():
            if here != theirs[kind][name]:
                yield LoadDifference(f"{kind}.{name}", here, theirs[kind][name])
