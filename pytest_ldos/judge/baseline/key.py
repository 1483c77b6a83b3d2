"""Calibrated noise of a host, and the key of baselines, calibrations, starts of searches and histories.

The schema has a version; a file of another version is refused. The key's fields are also columns of a history.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from glob import escape
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.files import RecordFormat, read_plain
from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.loads import LoadSpec

ENOUGH_RUNS: Final = 5
"""Fewest runs at different times from which the variation between runs is measured rather than assumed."""


@dataclass(frozen=True, kw_only=True)
class MetricNoise:
    """Variation of one metric between equal versions.

    Standard deviations of logarithms, which for small values are relative deviations.

    Attributes:
        trial_sd: between trials of one stack start, after covariates.
        start_sd: between starts of one session, beyond what the variation of their trials explains.
        start_df: degrees of freedom of `start_sd`.
        run_sd: between runs at different times, beyond what the variation of their trials explains.
        run_df: degrees of freedom of what runs add to `start_sd`; 0 if unknown, as from one run.
        floor: relative effect below which nothing is reported on this host.
    """

    trial_sd: float
    start_sd: float
    start_df: float
    run_sd: float
    run_df: float
    floor: float


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Noise of equal versions, as measured on one host.

    Attributes:
        made_at: ISO 8601, UTC.
        starts, trials: numbers of stack starts and trials it is based on.
        runs: number of runs, at different times, that the starts belong to.
    """

    scenario: str
    stack_kind: str
    fingerprint: Fingerprint
    made_at: str
    commit: str
    starts: int
    trials: int
    metrics: Mapping[str, MetricNoise]
    runs: int = 1


SCHEMA_VERSION: Final = 1
_FORMAT: Final = RecordFormat(
    "pytest-ldos calibration",
    SCHEMA_VERSION,
    remedy="delete it, or calibrate again: ldos calibrate",
    again="use the pytest-ldos that wrote it, or calibrate again: ldos calibrate",
)


def encode_calibration(calibration: Calibration) -> str:
    plain = asdict(calibration)
    if not calibration.fingerprint.stack_cpus:
        del plain["fingerprint"]["stack_cpus"]  # which older versions do not know
    return _FORMAT.encode(plain)


def decode_calibration(text: str, path: Path) -> Calibration:
    """Decodes a calibration from JSON text; raises `RecordUnreadable` as `RecordFormat.decode`."""
    return _FORMAT.decode(text, path, _to_calibration)


def _to_calibration(values: Mapping[str, Any]) -> Calibration:
    calibration: Calibration = read_plain(Calibration, values, "the calibration")
    for name in {"starts", "trials", "runs"} & values.keys():
        if values[name] < 1:
            raise ValueError(f"{name} is {values[name]!r}")
    for name, number in (each for noise in calibration.metrics.values() for each in vars(noise).items()):
        if number < 0:
            raise ValueError(f"{name} is {number}")
    if "runs" in values:
        return calibration
    # Groups may be halves of a single run.
    metrics = {name: replace(noise, run_df=0.0) for name, noise in calibration.metrics.items()}
    return replace(calibration, metrics=metrics)


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
        return cls(**{name: row[name] for name in KEY_COLUMNS})

    @classmethod
    def of_file(cls, file: Path, suffix: str) -> BaselineKey:
        parts = (*file.parent.parts, file.name.removesuffix(suffix))
        return cls(*parts[-len(KEY_COLUMNS) :])

    @property
    def place(self) -> BaselineKey:
        return replace(self, scenario="")

    def folder(self, store: Path) -> Path:
        return store.joinpath(*map(contained, asdict(self).values()))

    def file(self, store: Path, *, pinned: bool = False) -> Path:
        return self._sibling(store, PINNED_SUFFIX if pinned else SUFFIX)

    def calibration_file(self, store: Path) -> Path:
        return self._sibling(store, CALIBRATION_SUFFIX)

    def of_other_host_classes(self, stores: Iterable[Path], suffix: str) -> set[str]:
        """All host classes, including this one, that have such a file for the same stack and scenario."""
        parts = ("*" if name == "host_class" else escape(contained(part)) for name, part in asdict(self).items())
        pattern = f"{'/'.join(parts)}{suffix}"
        return {self.of_file(file, suffix).host_class for store in stores for file in store.glob(pattern)}

    def _sibling(self, store: Path, suffix: str) -> Path:
        folder = self.folder(store)
        return folder.with_name(f"{folder.name}{suffix}")


ANY_FILE: Final = "/".join("*" for _ in fields(BaselineKey)) + SUFFIX

KEY_COLUMNS: Final = tuple(each.name for each in fields(BaselineKey))


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
    """A setting of a load, or a whole load, that differs."""

    name: str  # ``KIND``, or ``KIND.SETTING``
    here: object | None  # `here` and `there`: the values; ``None`` on the side that does not have the load
    there: object | None


@dataclass(frozen=True)
class OtherLoads:
    """The file was measured under other loads."""

    file: Path
    differences: tuple[LoadDifference, ...]


@dataclass(frozen=True)
class OtherProblems:
    """The file has plans of other problems; `differences` are ``NAME is new``, ``is gone`` or ``changed``."""

    file: Path
    differences: tuple[str, ...]


def find_problem_differences(head: TrialSet, base: TrialSet) -> Iterator[str]:
    """Problems of one side, unless the other has too few trials to plan all, and those with another content."""
    ours, theirs = ({trial.goal: trial.content for trial in each.motions} for each in (head, base))
    for name in dict.fromkeys([*ours, *theirs]):
        if name in ours and name in theirs:
            if ours[name] and theirs[name] and ours[name] != theirs[name]:
                yield f"{name} changed"
        elif name in ours and len(base.trials) >= len(ours):
            yield f"{name} is new"
        elif name in theirs and len(head.trials) >= len(theirs):
            yield f"{name} is gone"


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
