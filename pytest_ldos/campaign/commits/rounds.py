"""Rounds of a search over commits, and their storage.

The order of the three versions alternates, so that neither drift nor the position in a round causes differences: each
order is followed by its reverse, and over six rounds each version is equally often at each position.

``.ldos/bisect/<stack>/<host class>/<scenario>/<good>..<bad>/`` holds ``<commit>.json``. The files of a finished search
are deleted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.errors import BringUpFailed, LdosError, LoadFailed
from pytest_ldos.base.series import Better
from pytest_ldos.campaign.bisection import Batch, Exclusion
from pytest_ldos.campaign.blocks import Bench, run_block
from pytest_ldos.campaign.commits.plan import Commit
from pytest_ldos.campaign.find_breaking import shortfall_of
from pytest_ldos.campaign.kept_documents import (
    plain_spec,
    plain_trials,
    read_document,
    set_damaged_aside,
    write_document,
)
from pytest_ldos.campaign.measure_start import Site, bench_of
from pytest_ldos.campaign.order import Block, Role
from pytest_ldos.campaign.versions.version import Version
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.trial.artifacts import drop_folder, new_run_folder, new_scenario_folder
from pytest_ldos.measure.trial.codec import decode_trials
from pytest_ldos.measure.trial.record import Trial, TrialSet
from pytest_ldos.scenario.model import ScenarioSpec


class Side(StrEnum):
    """Role of a version in a round."""

    GOOD = "good"
    COMMIT = "commit"
    BAD = "bad"


Records = Mapping[Side, TrialSet]
"""Trials of a commit's rounds by side; rounds of BAD have only GOOD and BAD."""

_FORWARD: Final = (
    (Side.GOOD, Side.COMMIT, Side.BAD),
    (Side.COMMIT, Side.BAD, Side.GOOD),
    (Side.BAD, Side.GOOD, Side.COMMIT),
)


class CommitFailed(LdosError):
    """The stack of a commit did not start, or died."""


class CommitNotBuilt(CommitFailed):
    """A commit could not be built."""


def order_of(number: int) -> Sequence[Side]:
    """Order of the sides in a round; rounds count from 0."""
    order = _FORWARD[number // 2 % len(_FORWARD)]
    return order[::-1] if number % 2 else order


def rounds_in(records: Records, trials_per_start: int) -> int:
    """Number of complete rounds."""
    return min((len(each.trials) // trials_per_start for each in records.values()), default=0)


def measure_round(
    spec: ScenarioSpec, site: Site, versions: Mapping[Side, Version], records: Records, number: int
) -> Records:
    """The records with one more round.

    Args:
        versions: sides that are measured.
        number: number of the commit's round, from 0.

    Raises:
        CommitFailed: the commit's stack did not start, or died.
        BringUpFailed: the stack of another version did not start; the message names the version.
        Unavailable, RecordingFailed, LoadFailed: see `run_block`.
    """
    folder = new_scenario_folder(new_run_folder(site.output), spec.name)
    bench, found = bench_of(spec, site, folder), dict(records)
    for place, side in enumerate(each for each in order_of(number) if each in versions):
        trials = range(number * spec.trials, (number + 1) * spec.trials)
        block = Block(len(Side) * number + place, Role.BASE if side is Side.GOOD else Role.HEAD, trials)
        found[side] = _run(bench, block, side, versions[side], records.get(side))
    drop_folder(folder)
    return found


def _run(bench: Bench, block: Block, side: Side, version: Version, record: TrialSet | None) -> TrialSet:
    try:
        made = run_block(bench, block, version, record, lambda _: None)
    except BringUpFailed as error:
        raise _failed(side, error) from None
    if made.incomplete:
        raise _failed(side, BringUpFailed(f"{version.name}: {made.incomplete}"))
    if reason := shortfall_of(made):
        raise LoadFailed(f"{version.name}: {reason}", remedy="ask for less load, or stop what else runs here")
    return made


def _failed(side: Side, error: BringUpFailed) -> LdosError:
    if side is not Side.COMMIT:
        return error
    return CommitFailed(error.message, details=error.details, remedy=error.remedy)


def compare_round(place: float, records: Records, metric: Metric, trials: range) -> Batch:
    """Counts the pairs of a round in which the commit is worse than GOOD, and better than BAD; see `commits.plan`.

    BAD itself is compared with GOOD in both. A failed trial is worse than any successful one. A tie counts for neither;
    a pair in which BAD and GOOD failed shows no difference, and counts for BAD.
    """
    sides = [[_badness(each.trials[index], metric) for index in trials] for each in _ordered(records)]
    made = [records[Side.COMMIT].trials[index] for index in trials]
    triples = [each for each in zip(*sides, strict=True) if None not in each]
    succeeded = sum(trial.succeeded for trial in made)
    unvalued = sum(each is None for each in sides[1])
    if not triples:
        reason = f"no trial has a value of {metric.name} on every side"
        return Batch(place, exclusion=Exclusion.UNMEASURED, reason=reason, succeeded=succeeded, unvalued=unvalued)
    return Batch(
        place,
        len(triples),
        sum(_is_worse(commit, good) for good, commit, *_ in triples),
        sound=sum(_is_worse(bad, commit) for _, commit, bad in triples) if Side.BAD in records else _sound(triples),
        succeeded=succeeded,
        unvalued=unvalued,
    )


def _sound(pairs: Iterable[Sequence[float | None]]) -> int:
    """Number of pairs of GOOD and BAD that show no regression."""
    return sum(_is_worse(good, bad) or good == bad == math.inf for good, bad in pairs)


def _ordered(records: Records) -> list[TrialSet]:
    return [records[side] for side in Side if side in records]


def _badness(trial: Trial, metric: Metric) -> float | None:
    """A number that is higher for a worse trial; ``None`` if a successful one has no value."""
    if not trial.succeeded:
        return math.inf
    measured = trial.measurements.get(metric.name)
    value = None if measured is None else measured.number
    return -value if value is not None and metric.better is Better.HIGHER else value


def _is_worse(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one > other


FOLDER: Final = "bisect"
KIND: Final = "pytest-ldos rounds of a commit"


@dataclass(frozen=True)
class CommitEvidence:
    """The rounds of one search.

    Attributes:
        spec: the scenario that is measured.
        where: identity of the machine; see `campaign.measured_version`.
    """

    folder: Path
    spec: ScenarioSpec
    where: Mapping[str, str]

    @classmethod
    def of(
        cls,
        output: Path,
        key: BaselineKey,
        ends: tuple[Commit, Commit],
        *,
        spec: ScenarioSpec,
        where: Mapping[str, str],
    ) -> CommitEvidence:
        good, bad = ends
        return cls(key.folder(output / FOLDER) / f"{good.name}..{bad.name}", spec, where)

    def keep(self, commit: Commit, records: Records) -> None:
        """Writes all rounds of a commit.

        Raises:
            NotWritten: they could not be written; earlier ones are intact.
        """
        sides = {side: plain_trials(trials) for side, trials in records.items()}
        write_document(self._file(commit), {"kind": KIND, **self._setting, "sides": sides})

    def records(self, commit: Commit) -> Records:
        """Stored rounds of a commit with the same settings and machine; empty if there are none.

        Raises:
            RecordUnreadable: the file is damaged; the message names it.
        """
        file = self._file(commit)
        if not file.is_file():
            return {}
        document = _read(file)
        if {name: document[name] for name in self._setting} != self._setting:
            return {}
        return {side: decode_trials(json.dumps(each), file) for side, each in document["sides"].items()}

    def set_damaged_aside(self) -> list[Path]:
        """See `set_damaged_aside`."""
        return set_damaged_aside(sorted(self.folder.glob("*.json")), _decode)

    def drop(self) -> None:
        """Deletes the files of a finished search."""
        for file in self.folder.glob("*.json"):
            file.unlink()

    @property
    def _setting(self) -> dict[str, Any]:
        return {"asked": plain_spec(self.spec), "where": dict(self.where)}

    def _file(self, commit: Commit) -> Path:
        return self.folder / f"{commit.name}.json"


def _decode(file: Path) -> None:
    for each in _read(file)["sides"].values():
        decode_trials(json.dumps(each), file)


def _read(file: Path) -> dict[str, Any]:
    return read_document(file, _parse, remedy=f"delete {file.name}: its rounds are measured again")


def _parse(document: Any) -> dict[str, Any]:
    sides = {Side(name): each for name, each in document["sides"].items()}
    return {"asked": document["asked"], "where": document["where"], "sides": sides}
