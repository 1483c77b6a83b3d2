"""A search for a breaking point: plan, stored starts, and numeric result.

``.ldos/breaking/<stack>/<host class>/<scenario>/<address>/`` holds ``start-0001.json`` …
The starts of a finished search are deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pytest_ldos.base.stats.counts import LogisticCurve, estimate_correlation, fit_logistic
from pytest_ldos.base.stats.several_tests import BoundaryTest
from pytest_ldos.campaign.bisection import Bisection, Finding, LevelRecord, LevelState, SearchPlan
from pytest_ldos.campaign.breaking_cause import Cause, find_cause
from pytest_ldos.campaign.criterion import Criterion
from pytest_ldos.campaign.kept_documents import (
    plain_spec,
    plain_trials,
    read_document,
    set_damaged_aside,
    write_document,
)
from pytest_ldos.judge.baseline.key import BaselineKey
from pytest_ldos.measure.trial.codec import decode_trials
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.model import ScenarioSpec


@dataclass(frozen=True, kw_only=True)
class BreakingPlan:
    """Varied setting, criterion and limits of a search.

    Attributes:
        address: the varied setting, e.g. ``dds_flood.rate_hz``.
        time_limit_s: starts that are expected to end later are not begun; ``None`` for no limit.
    """

    address: str
    search: SearchPlan
    criterion: Criterion
    time_limit_s: float | None = None


LEVEL_CONFIDENCE: Final = 0.95
"""Confidence of the displayed intervals of single levels; no decision depends on them."""

_MUCH_MORE: Final = 2.0
_FEWEST_STARTS: Final = 6


class EstimateBy(StrEnum):
    """Source of an estimate."""

    FIT = "logistic curve through all trials"
    MIDDLE = "middle of the interval"


@dataclass(frozen=True)
class LevelSummary:
    """A visited level.

    Attributes:
        low, high: interval of the probability that a trial breaks, valid at any time (`LEVEL_CONFIDENCE`).
        unvalued: number of successful trials without a value of the criterion's metric; they do not count.
        median: median of the criterion's metric; ``None`` for success rates, or without a value.
        mishaps: reasons for excluded starts.
    """

    level: float
    standing: LevelState
    trials: int
    broken: int
    unvalued: int
    starts: int
    low: float
    high: float
    median: float | None
    mishaps: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BreakingResult:
    """Result of a search.

    Attributes:
        holds, breaks: levels between which the threshold lies; ``None`` if none was shown.
        estimate: estimate of the threshold; ``None`` without an interval.
        ceiling: the calmest level that could not be measured, if nothing was shown to break.
        reached: the level that the load reached there; ``None`` if that is unknown.
        levels: from the calm end on.
        curve: probability of breaking over the place of a level (0 the calm end, 1 the harsh one).
        limit: the criterion in numbers.
        stopped: reason of an early end or of an interval wider than requested; empty otherwise.
        is_finished: True if nothing is left to measure.
        notes: remarks for the report.
    """

    plan: BreakingPlan
    finding: Finding
    holds: float | None
    breaks: float | None
    estimate: float | None
    estimate_by: EstimateBy | None
    ceiling: LevelSummary | None
    reached: float | None
    levels: tuple[LevelSummary, ...]
    curve: LogisticCurve | None
    trials: int
    starts: int
    limit: str
    stopped: str
    is_finished: bool
    notes: tuple[str, ...]
    cause: Cause | None
    template: TrialSet | None


def conclude(
    plan: BreakingPlan,
    bisection: Bisection,
    sets: Mapping[float, TrialSet],
    ended_early: Mapping[float, Sequence[str]],
    *,
    stopped: str,
) -> BreakingResult:
    """Summarises a search at its end.

    Args:
        sets: trials of each level, from the calm end on.
        ended_early: messages of failed motions that are not trials, by level.
    """
    scale = plan.search.scale
    holds, breaks, ceiling = bisection.holds, bisection.breaks, bisection.ceiling
    curve = _fit(bisection)
    estimate, estimate_by = _estimate(bisection, curve)
    calm = sets.get(scale.calm)
    ordered = sorted(bisection.records.values(), key=lambda each: scale.place(each.level))
    reached = None if ceiling is None else next((each.achieved for each in ceiling.batches if each.achieved), None)
    return BreakingResult(
        plan=plan,
        finding=bisection.finding,
        holds=None if holds is None else holds.level,
        breaks=None if breaks is None else breaks.level,
        estimate=estimate,
        estimate_by=estimate_by,
        ceiling=None if ceiling is None else _summarize(plan, ceiling, sets),
        reached=reached,
        levels=tuple(_summarize(plan, each, sets) for each in ordered),
        curve=curve,
        trials=bisection.trials,
        starts=bisection.starts,
        limit=plan.criterion.describe_limit(plan.criterion.limit(calm)),
        stopped=stopped or _why_ended(bisection),
        is_finished=not stopped,
        notes=tuple(_notes(plan, bisection)),
        cause=_cause(plan, bisection, sets, ended_early),
        template=next(iter(sets.values()), None),
    )


def _summarize(plan: BreakingPlan, record: LevelRecord, sets: Mapping[float, TrialSet]) -> LevelSummary:
    test = BoundaryTest(plan.search.boundary, 1 - LEVEL_CONFIDENCE, plan.search.test.exponent)
    low, high = test.interval(record.broken, record.trials)
    trials = sets.get(record.level)
    return LevelSummary(
        level=record.level,
        standing=record.standing,
        trials=record.trials,
        broken=record.broken,
        unvalued=record.unvalued,
        starts=len(record.batches),
        low=low,
        high=high,
        median=plan.criterion.median(trials) if trials is not None else None,
        mishaps=(
            *(f"{each.exclusion}: {each.reason}" for each in record.exclusions),
            *_without_values(plan, record, trials),
        ),
    )


def _without_values(plan: BreakingPlan, record: LevelRecord, trials: TrialSet | None) -> Iterator[str]:
    """Explains that a level is not judged because most of its successful trials lack a value of the metric."""
    if record.standing is not LevelState.UNVALUED:
        return
    reasons = (plan.criterion.why_unvalued(each) for each in (trials.trials if trials is not None else ()))
    why = next((each for each in reasons if each), "it was not taken")
    yield (
        f"it is not judged: {record.unvalued} of {record.succeeded} trials that succeeded have no "
        f"{plan.criterion.metric_name} ({why})"
    )


def _fit(bisection: Bisection) -> LogisticCurve | None:
    """Fits a curve if levels on both sides of the threshold were tested."""
    tested = [each for each in bisection.records.values() if each.trials]
    if bisection.finding is not Finding.BREAKS:
        return None
    places = [bisection.plan.scale.place(each.level) for each in tested]
    return fit_logistic(places, [each.broken for each in tested], [each.trials for each in tested])


def _estimate(bisection: Bisection, curve: LogisticCurve | None) -> tuple[float | None, EstimateBy | None]:
    """The fit, clamped to the interval, if a level has broken and unbroken trials; else the interval's middle."""
    holds, breaks, scale = bisection.holds, bisection.breaks, bisection.plan.scale
    if holds is None or breaks is None or curve is None:
        return None, None
    low, high = scale.place(holds.level), scale.place(breaks.level)
    is_mixed = any(0 < each.broken < each.trials for each in bisection.records.values())
    if not is_mixed:
        return scale.level((low + high) / 2), EstimateBy.MIDDLE
    return scale.level(min(high, max(low, curve.place_of(bisection.plan.boundary)))), EstimateBy.FIT


def _why_ended(bisection: Bisection) -> str:
    """Reason why the interval is wider than requested; empty if it is not."""
    holds, breaks = bisection.holds, bisection.breaks
    if holds is None or breaks is None or bisection.plan.scale.is_near(holds.level, breaks.level):
        return ""
    if bisection.is_spent:
        return f"{bisection.plan.max_trials} trials were not enough to narrow it further: --max-trials"
    blocked = [each for each in bisection.records.values() if each.is_blocked]
    if any(each.standing is not LevelState.UNDECIDED for each in blocked):
        return "levels between could not be measured"
    return f"levels between stayed undecided after {bisection.plan.patience} trials each: the change is gradual"


def _notes(plan: BreakingPlan, bisection: Bisection) -> list[str]:
    notes = []
    left_out = {each.level: each.unvalued for each in bisection.records.values() if each.unvalued}
    if left_out:
        few = ", ".join(f"{count} at {level:g}" for level, count in sorted(left_out.items()))
        what = f"trials that succeeded but have no {plan.criterion.metric_name}"
        notes.append(f"{what}, left out: {sum(left_out.values())} ({few})")
    if bisection.contradictions and bisection.breaks:
        held = ", ".join(f"{each.level:g}" for each in bisection.contradictions)
        notes.append(
            f"harsher is not always worse here: {held} holds though {bisection.breaks.level:g} breaks; "
            "the interval is of the first crossing that was found, and there are others"
        )
    groups = [each.groups for each in bisection.records.values() if 0 < each.broken < each.trials]
    correlation = estimate_correlation(groups)
    many = sum(map(len, groups)) >= _FEWEST_STARTS
    if correlation is not None and many and correlation > _MUCH_MORE * plan.search.correlation:
        notes.append(
            f"starts of the stack differ more than supposed (correlation {correlation:.2f} between trials of one, "
            f"supposed {plan.search.correlation:.2f}): the interval covers less often than stated; "
            "--trials-per-start 1 supposes nothing"
        )
    return notes


def _cause(
    plan: BreakingPlan,
    bisection: Bisection,
    sets: Mapping[float, TrialSet],
    ended_early: Mapping[float, Sequence[str]],
) -> Cause | None:
    """Explains the calmest level that breaks; if none does, the harshest that was measured."""
    calm = sets.get(plan.search.scale.calm)
    if calm is None or len(sets) < 2:
        return None
    limit = plan.criterion.limit(calm)
    threshold = bisection.breaks.level if bisection.breaks else list(sets)[-1]
    bracket = [each.level for each in (bisection.holds, bisection.breaks) if each is not None and each.level in sets]
    return find_cause(
        sets,
        threshold=threshold,
        bracket=bracket,
        ended_early=ended_early.get(threshold, ()),
        criterion_metric=plan.criterion.metric_name,
        is_broken=lambda trial: plan.criterion.is_broken(trial, limit),
    )


FOLDER: Final = "breaking"
KIND: Final = "pytest-ldos start of a search"
_START: Final = re.compile(r"start-([0-9]{1,9})\.json")


@dataclass(frozen=True)
class KeptStart:
    """One measured start.

    Attributes:
        asked: the requested scenario, as plain values.
        version: identity of version and machine; see `campaign.measured_version`.
    """

    level: float
    asked: Any
    version: Mapping[str, str]
    trials: TrialSet


@dataclass(frozen=True)
class BreakingEvidence:
    """The starts of one search."""

    folder: Path

    @classmethod
    def of(cls, output: Path, key: BaselineKey, address: str) -> BreakingEvidence:
        safe = re.sub(r"[^A-Za-z0-9_.-]", "_", address)
        return cls(key.folder(output / FOLDER) / safe)

    def keep(self, level: float, spec: ScenarioSpec, trials: TrialSet, version: Mapping[str, str]) -> None:
        """Writes a start to disk.

        Raises:
            NotWritten: it could not be written.
        """
        number = 1 + max((number for number, _ in self._files()), default=0)
        document = {
            "kind": KIND,
            "level": level,
            "asked": plain_spec(spec),
            "version": dict(version),
            "trials": plain_trials(trials),
        }
        write_document(self.folder / f"start-{number:04d}.json", document)

    def starts(self) -> list[KeptStart]:
        """The stored starts, in the order of measurement.

        Raises:
            RecordUnreadable: a file is damaged; the message names it.
        """
        return [_read(file) for _, file in self._files()]

    def __len__(self) -> int:
        """Number of stored starts."""
        return len(self._files())

    def set_damaged_aside(self) -> list[Path]:
        """See `set_damaged_aside`."""
        return set_damaged_aside([file for _, file in self._files()], _read)

    def drop(self, *, but: Callable[[KeptStart], bool]) -> None:
        """Deletes the starts of a finished search, except those (`but`) that another search may resume from."""
        for _, file in self._files():
            if not but(_read(file)):
                file.unlink(missing_ok=True)

    def _files(self) -> list[tuple[int, Path]]:
        found = ((_START.fullmatch(file.name), file) for file in self.folder.glob("start-*.json"))
        return sorted((int(match[1]), file) for match, file in found if match)


def _read(file: Path) -> KeptStart:
    level, asked, version, trials = read_document(
        file, _parse, remedy=f"delete {file.name}: the search measures it again"
    )
    return KeptStart(level, asked, version, decode_trials(trials, file))


def _parse(document: Any) -> tuple[float, Any, dict[str, str], str]:
    version, trials = dict(document["version"]), json.dumps(document["trials"])
    return float(document["level"]), document["asked"], version, trials
