"""Baselines and calibrations on disk: two stores, and the search for those that apply to a run.

Runs record into the local store by default; `promote` copies from there into the repository. The
repository's store takes precedence if the settings name it. Otherwise its baselines are shared: another machine of the
host class recorded them, and a machine without a baseline of its own shows them without judging.

Missing, unreadable and not comparable are different results: the first requires a recording, the second a repair, and
the third a new baseline for this host class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError, RecordUnreadable
from pytest_ldos.base.files import write_atomically
from pytest_ldos.judge.baseline import key as keys
from pytest_ldos.judge.baseline.key import SUFFIX, BaselineKey, Calibration
from pytest_ldos.measure.trial.artifacts import encode_trials, read_trials
from pytest_ldos.measure.trial.record import Trial, TrialSet
from pytest_ldos.scenario.settings import Sources
from pytest_ldos.scenario.words import StimulusKind


@dataclass(frozen=True)
class StoredBaseline:
    key: BaselineKey
    file: Path
    is_local: bool
    is_pinned: bool


@dataclass(frozen=True)
class BaselineStores:
    """The repository's store and the local one."""

    repository: Path  # ``baselines/`` in the project, under version control
    local: Path  # ``.ldos/baselines/``
    repository_gates: bool = True  # True if runs are judged by the repository's baselines; False if these are shared
    project: Path | None = None  # in whose commits changes are accepted; ``None`` to accept nothing

    @classmethod
    def of(cls, sources: Sources) -> BaselineStores:
        return cls(
            repository=sources.folder("baselines"),
            local=sources.folder("output") / "baselines",
            repository_gates=sources.is_given("baselines"),
            project=sources.root,
        )

    def find(self, key: BaselineKey, *, pinned: bool = False) -> StoredBaseline | None:
        """The baseline that a run is judged by; the repository's store takes precedence if it gates."""
        for store in self._gating:
            file = key.file(store, pinned=pinned)
            if file.is_file():
                return StoredBaseline(key, file, store == self.local, pinned)
        return None

    def other_host_classes(self, key: BaselineKey, suffix: str = SUFFIX) -> list[str]:
        """Host classes that have a gating baseline, or file with another `suffix`, for the stack and scenario."""
        stores = self._gating if suffix == SUFFIX else (self.repository, self.local)
        return sorted(key.of_other_host_classes(stores, suffix))

    @property
    def _gating(self) -> tuple[Path, ...]:
        return (self.repository, self.local) if self.repository_gates else (self.local,)

    def save(self, trials: TrialSet, *, to_repository: bool) -> Path:
        file = BaselineKey.of(trials).file(self.repository if to_repository else self.local)
        write_atomically(file, encode_trials(trials))
        return file

    def update(self, trials: TrialSet) -> Path:
        """Replaces the baseline that trials are judged by; a new baseline goes to the local store."""
        found = self.find(BaselineKey.of(trials))
        return self.save(trials, to_repository=found is not None and not found.is_local)

    def all(self) -> Iterator[StoredBaseline]:
        for store, is_local in ((self.repository, False), (self.local, True)):
            for file in sorted(store.glob(keys.ANY_FILE)):
                if file.name.endswith(keys.CALIBRATION_SUFFIX):
                    continue
                is_pinned = file.name.endswith(keys.PINNED_SUFFIX)
                key = BaselineKey.of_file(file, keys.PINNED_SUFFIX if is_pinned else SUFFIX)
                yield StoredBaseline(key, file, is_local, is_pinned)

    def pin(self, baseline: StoredBaseline) -> Path:
        """Copies a baseline to the pinned release, which updates do not change; `RecordUnreadable` if it is damaged."""
        read_trials(baseline.file)
        target = baseline.key.file(self.local if baseline.is_local else self.repository, pinned=True)
        write_atomically(target, baseline.file.read_bytes())
        return target

    def promote(self, baseline: StoredBaseline) -> Path:
        """Copies a local baseline into the repository, without names of other programs; see `pin` for errors."""
        trials = read_trials(baseline.file)
        if not baseline.is_local:
            raise ConfigurationError(f"{baseline.file} is in the repository's store already")
        target = baseline.key.file(self.repository, pinned=baseline.is_pinned)
        write_atomically(target, encode_trials(trials.without_programs()))
        return target


_BLOCK: Final = "block"
"""Key in a load's proof: the stack start in which it was applied."""


def merge_trials(sets: Sequence[TrialSet]) -> TrialSet:
    """All trials of `sets`, renumbered; starts on different machines remain different blocks.

    Raises `ConfigurationError` for fewer than two sets, for one given twice, or if they cannot be merged.
    """
    if len(sets) < 2:
        names = ", ".join(f"'{each.scenario}' of host class {each.fingerprint.host_class}" for each in sets)
        raise ConfigurationError(
            f"there is only one run of {names or 'nothing'}: nothing to merge", remedy="name those of several machines"
        )
    first, *others = ordered = sorted(sets, key=lambda each: (each.started_at, each.fingerprint.hostname))
    for other in others:
        for what, wrong in _reasons(first, other):
            if wrong:
                raise ConfigurationError(
                    f"runs of '{first.scenario}' cannot be one baseline: {what}",
                    remedy="measure one commit with the same settings on all machines of a class",
                )
    trials, loads = join_trials(ordered)
    if len({trial.identity for trial in trials}) < len(trials):
        raise ConfigurationError("the same trials are given twice", remedy="name each run once")
    hosts = [each.fingerprint for each in ordered]
    packages = sorted({name for host in hosts for name in host.versions})
    fingerprint = replace(  # properties that differ are listed for all machines
        first.fingerprint,
        hostname=_joined(host.hostname for host in hosts),
        kernel=_joined(host.kernel for host in hosts),
        versions={name: _joined(host.versions.get(name, "absent") for host in hosts) for name in packages},
    )
    return replace(
        first,
        spec=replace(first.spec, trials=sum(each.spec.trials for each in ordered)),
        stack=_joined(each.stack for each in ordered),
        recorder=_joined(each.recorder for each in ordered),
        fingerprint=fingerprint,
        trials=trials,
        loads=loads,
        discarded_events=sum(each.discarded_events for each in ordered),
        incomplete=_joined(each.incomplete for each in ordered if each.incomplete),
        environment={},  # of several machines
        trace="",
        looks=(),
        last_look=None,
        session="",
    )


def join_trials(sets: Iterable[TrialSet]) -> tuple[tuple[Trial, ...], tuple[Mapping[str, object], ...]]:
    """Trials and loads of all sets, renumbered; blocks of each set follow those of the sets before it."""
    trials: list[Trial] = []
    all_loads: list[Mapping[str, object]] = []
    first_block = 0
    for each in sets:
        of_loads = {found for load in each.loads if isinstance(found := load.get(_BLOCK), int)}
        blocks = sorted({trial.block for trial in each.trials} | of_loads)
        places = {block: first_block + place for place, block in enumerate(blocks)}
        for trial in each.trials:
            trials.append(replace(trial, index=len(trials), block=places[trial.block]))
        for load in each.loads:
            block = load.get(_BLOCK)
            all_loads.append({**load, _BLOCK: places[block]} if isinstance(block, int) else load)
        first_block += len(blocks)
    return tuple(trials), tuple(all_loads)


def _reasons(first: TrialSet, other: TrialSet) -> Iterator[tuple[str, bool]]:
    machines = f"{first.fingerprint.hostname} and {other.fingerprint.hostname}"
    one, two = BaselineKey.of(first), BaselineKey.of(other)
    settings = [replace(each.spec, trials=1) for each in (first, other)]
    yield f"{machines} have {one} and {two}", one != two
    commits = f"{first.commit or 'unknown'} and {other.commit or 'unknown'}"
    yield f"{machines} measured commits {commits}", first.commit != other.commit
    yield f"{machines} had different settings or loads", settings[0] != settings[1]
    yield f"{machines} took different metrics", first.metrics != other.metrics
    yield f"trials of {machines} were watched", bool(first.watched or other.watched)


def _joined(texts: Iterable[str]) -> str:
    return " + ".join(dict.fromkeys(texts))


@dataclass(frozen=True)
class Found:
    trials: TrialSet
    file: Path


@dataclass(frozen=True)
class NotComparable:
    """A baseline exists, but for another host class, under other loads, or of other planning problems."""

    reason: keys.OtherHost | keys.OtherHostClasses | keys.OtherScenario | keys.OtherLoads | keys.OtherProblems
    is_ours: bool = False  # True if it is stored under this run's own key; it is then replaced only on request
    shown: Found | None = None  # trials whose numbers are shown all the same; ``None`` if there are none


@dataclass(frozen=True)
class Unreadable:
    reason: str


@dataclass(frozen=True)
class NoBaseline:
    """No baseline has been recorded for this scenario yet.

    The repository's, if any, was recorded by another machine of this host class; it is shown, but not judged by.
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
    """Saved trials as a base, if stack, host class, loads and planning problems are the same."""
    here, there = BaselineKey.of(head), BaselineKey.of(base)
    if here.place != there.place:
        return NotComparable(keys.OtherHost(here, there))
    if unlike := tuple(keys.find_load_differences(head.spec.loads, base.spec.loads)):
        return NotComparable(keys.OtherLoads(file, unlike), is_ours=True)
    if StimulusKind.PLAN in {head.spec.stack.stimulus, base.spec.stack.stimulus}:
        others = tuple(keys.find_problem_differences(head, base))
        return NotComparable(keys.OtherProblems(file, others), is_ours=True) if others else Found(base, file)
    return Found(base, file)


def find_baseline(stores: BaselineStores, trials: TrialSet) -> Lookup:
    key = BaselineKey.of(trials)
    stored, shared = stores.find(key), key.file(stores.repository)
    if stored is not None:
        return _read_for(stored.file, trials)
    if shared.is_file() and not stores.repository_gates:
        return NoBaseline(_read_for(shared, trials))
    others = stores.other_host_classes(key)
    return NotComparable(keys.OtherHostClasses(key, tuple(others))) if others else NoBaseline(None)


def _read_for(file: Path, trials: TrialSet) -> Found | NotComparable | Unreadable:
    key = BaselineKey.of(trials)
    try:
        base = read_trials(file)
    except RecordUnreadable as error:
        return Unreadable(str(error))
    if BaselineKey.of(base) != key:
        return NotComparable(keys.OtherScenario(file, key, BaselineKey.of(base)))
    return compare_with(trials, base, file)


@dataclass(frozen=True)
class Calibrated:
    calibration: Calibration
    file: Path

    @property
    def noise(self) -> Mapping[str, keys.MetricNoise]:
        return self.calibration.metrics


@dataclass(frozen=True)
class Uncalibrated:
    """No calibration applies to this host class; `other` are calibrations that exist but do not apply."""

    other: keys.OtherHostClasses | keys.OtherScenario | None = None


@dataclass(frozen=True)
class UnreadableCalibration:
    reason: str


CalibrationLookup = Calibrated | Uncalibrated | UnreadableCalibration


def find_calibration(stores: BaselineStores, trials: TrialSet) -> CalibrationLookup:
    return find_calibration_of(stores, BaselineKey.of(trials))


def find_calibration_of(stores: BaselineStores, key: BaselineKey) -> CalibrationLookup:
    """The calibration for a key; the repository's store takes precedence over the local store."""
    if (file := next((each for each in _places(stores, key) if each.is_file()), None)) is None:
        others = stores.other_host_classes(key, keys.CALIBRATION_SUFFIX)
        return Uncalibrated(keys.OtherHostClasses(key, tuple(others)) if others else None)
    try:
        calibration = keys.decode_calibration(file.read_text("utf-8", errors="replace"), file)
    except RecordUnreadable as error:
        return UnreadableCalibration(error.summary)
    except OSError as error:
        return UnreadableCalibration(f"{file} cannot be read: {error.strerror}")
    found = BaselineKey.of(calibration)
    if found != key:
        return Uncalibrated(keys.OtherScenario(file, key, found))
    return Calibrated(calibration, file)


def save_calibration(stores: BaselineStores, calibration: Calibration, *, to_repository: bool = False) -> Path:
    """Stores a calibration where one already exists, or else in the requested store."""
    repository, local = _places(stores, BaselineKey.of(calibration))
    file = repository if to_repository or repository.is_file() else local
    write_atomically(file, keys.encode_calibration(calibration))
    return file


def _places(stores: BaselineStores, key: BaselineKey) -> tuple[Path, Path]:
    return key.calibration_file(stores.repository), key.calibration_file(stores.local)
