"""Baselines on disk: one store in the repository, one local to the machine.

Runs record into the local store by default; `promote` copies from there into the repository. The
repository's store takes precedence where the settings name it. Otherwise its baselines are shared: another
machine of the host class recorded them, and a machine without a baseline of its own shows them without judging.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.writable import write_atomically
from pytest_ldos.judge.baseline.key import ANY_FILE, CALIBRATION_SUFFIX, PINNED_SUFFIX, SUFFIX, BaselineKey
from pytest_ldos.measure.trial.artifacts import read_trials
from pytest_ldos.measure.trial.codec import encode_trials
from pytest_ldos.measure.trial.record import TrialSet
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
        """The baseline that a run is judged by; the repository's store takes precedence where it gates."""
        for store in self._gating:
            file = key.file(store, pinned=pinned)
            if file.is_file():
                return StoredBaseline(key, file, store == self.local, pinned)
        return None

    def find_shared(self, key: BaselineKey) -> Path | None:
        """The file of the repository's baseline for a key, where it does not gate."""
        file = key.file(self.repository)
        return file if file.is_file() and not self.repository_gates else None

    def other_host_classes(self, key: BaselineKey, suffix: str = SUFFIX) -> list[str]:
        """Host classes that have a baseline to be judged by, or the file with another `suffix`.

        Those of the stack and scenario of `key`.
        """
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
        """Records trials where the baseline that they are judged by exists; a new one goes to the local store."""
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
        """Copies a baseline to the pinned release, which stays when the rolling baseline moves on.

        Raises:
            RecordUnreadable: it is damaged.
        """
        read_trials(baseline.file)
        store = self.local if baseline.is_local else self.repository
        return _copied(baseline.file, baseline.key.file(store, pinned=True))

    def promote(self, baseline: StoredBaseline) -> Path:
        """Copies a local baseline into the repository's store, without the names of other programs of the machine.

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
