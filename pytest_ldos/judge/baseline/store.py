"""Baselines on disk: a store in the repository and a store local to the machine; merges baselines of several machines.

Runs record into the local store by default; `promote` copies from there into the repository. The
repository's store takes precedence if the settings name it. Otherwise its baselines are shared: another machine of the
host class recorded them, and a machine without a baseline of its own shows them without judging.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.host.fingerprint import Fingerprint
from pytest_ldos.judge.baseline.key import ANY_FILE, CALIBRATION_SUFFIX, PINNED_SUFFIX, SUFFIX, BaselineKey
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.measure.trial.record import Trial, TrialSet
from pytest_ldos.scenario.settings import Sources


@dataclass(frozen=True)
class StoredBaseline:
    """A baseline that exists.

    Attributes:
        is_local: True if it is in the local store, not in the repository's.
    """

    key: BaselineKey
    file: Path
    is_local: bool
    is_pinned: bool


@dataclass(frozen=True)
class BaselineStores:
    """The repository's store and the local one.

    Attributes:
        repository: ``baselines/`` in the project, under version control.
        local: ``.ldos/baselines/``.
        repository_gates: True if runs are judged by the repository's baselines; False if these are shared.
    """

    repository: Path
    local: Path
    repository_gates: bool = True

    @classmethod
    def of(cls, sources: Sources) -> BaselineStores:
        """The stores of a project, as its settings name them."""
        return cls(
            repository=sources.folder("baselines"),
            local=sources.folder("output") / "baselines",
            repository_gates=sources.is_given("baselines"),
        )

    def find(self, key: BaselineKey, *, pinned: bool = False) -> StoredBaseline | None:
        """The baseline that a run is judged by; the repository's store takes precedence if it gates."""
        for store in self._gating:
            file = key.file(store, pinned=pinned)
            if file.is_file():
                return StoredBaseline(key, file, store == self.local, pinned)
        return None

    def find_shared(self, key: BaselineKey) -> Path | None:
        """The file of the repository's baseline for a key, if it does not gate."""
        file = key.file(self.repository)
        return file if file.is_file() and not self.repository_gates else None

    def other_host_classes(self, key: BaselineKey, suffix: str = SUFFIX) -> list[str]:
        """Host classes that have a gating baseline, or file with another `suffix`, for the stack and scenario."""
        stores = self._gating if suffix == SUFFIX else (self.repository, self.local)
        return sorted(key.of_other_host_classes(stores, suffix))

    @property
    def _gating(self) -> tuple[Path, ...]:
        return (self.repository, self.local) if self.repository_gates else (self.local,)

    def save(self, trials: TrialSet, *, to_repository: bool) -> Path:
        """Records trials as the baseline of their key."""
        file = BaselineKey.of(trials).file(self.repository if to_repository else self.local)
        write_atomically(file, encode_trials(trials))
        return file

    def update(self, trials: TrialSet) -> Path:
        """Replaces the baseline that trials are judged by; a new baseline goes to the local store."""
        found = self.find(BaselineKey.of(trials))
        return self.save(trials, to_repository=found is not None and not found.is_local)

    def all(self) -> Iterator[StoredBaseline]:
        """Every baseline of both stores."""
        for store, is_local in ((self.repository, False), (self.local, True)):
            for file in sorted(store.glob(ANY_FILE)):
                if file.name.endswith(CALIBRATION_SUFFIX):
                    continue
                is_pinned = file.name.endswith(PINNED_SUFFIX)
                key = BaselineKey.of_file(file, PINNED_SUFFIX if is_pinned else SUFFIX)
                yield StoredBaseline(key, file, is_local, is_pinned)

    def pin(self, baseline: StoredBaseline) -> Path:
        """Copies a baseline to the pinned release, which later updates of the rolling baseline do not change.

        Raises:
            RecordUnreadable: it is damaged.
        """
        read_trials(baseline.file)
        store = self.local if baseline.is_local else self.repository
        return _copied(baseline.file, baseline.key.file(store, pinned=True))

    def promote(self, baseline: StoredBaseline) -> Path:
        """Copies a local baseline into the repository's store, without names of other programs on the machine.

        Raises:
            ConfigurationError: it is already there.
            RecordUnreadable: it is damaged.
        """
        trials = read_trials(baseline.file)
        if not baseline.is_local:
            raise ConfigurationError(f"{baseline.file} is in the repository's store already")
        target = baseline.key.file(self.repository, pinned=baseline.is_pinned)
        write_atomically(target, encode_trials(trials.without_programs()))
        return target


def _copied(file: Path, target: Path) -> Path:
    write_atomically(target, file.read_bytes())
    return target


_BLOCK: Final = "block"
"""Key in a load's proof: the stack start in which it was applied."""


def merge_trials(sets: Sequence[TrialSet]) -> TrialSet:
    """All trials of `sets`, renumbered; starts on different machines remain different blocks.

    Raises:
        ConfigurationError: there are fewer than two sets, one is given twice, or they cannot be merged.
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
        raise ConfigurationError("the same trials are given twice", remedy="name each run once")
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
    renumbered = [*_renumbered(sets)]
    trials = (trial for each in renumbered for trial in each.trials)
    numbered = tuple(dataclasses.replace(trial, index=index) for index, trial in enumerate(trials))
    return numbered, tuple(load for each in renumbered for load in each.loads)


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


def _renumbered(sets: Iterable[TrialSet]) -> Iterator[TrialSet]:
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
