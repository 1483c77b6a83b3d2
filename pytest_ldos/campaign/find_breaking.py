"""Searches for the level of a load, or of a setting, at which an arm breaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final, cast

from pytest_ldos.base.errors import BringUpFailed, ConfigurationError, LoadFailed, RecordingFailed, TraceUnreadable
from pytest_ldos.campaign.bisection import Batch, Bisection, Exclusion, LevelScale, Spacing
from pytest_ldos.campaign.breaking_result import BreakingPlan, BreakingResult, conclude
from pytest_ldos.campaign.cells import assign, canonical, known_addresses
from pytest_ldos.campaign.starts import (
    CampaignObserver,
    Store,
    StoredTrials,
    TimeLimit,
    append_start,
    decode_stored,
    encode_stored,
    has_lost_motion,
    motions_of,
    plain_spec,
    shortfall_of,
    with_lost_motion,
)
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.loads import LOAD_SPECS
from pytest_ldos.scenario.model import ScenarioSpec


class BreakingStore(Store[StoredTrials[float]]):
    """The starts of one search.

    ``.ldos/breaking/<stack>/<host class>/<scenario>/<address>/`` holds ``start-001.json`` …, each written after its
    start. Those of a finished search are deleted.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, partial(decode_stored, key=float), encode_stored, stem="start")


@dataclass(frozen=True)
class _Start:
    level: float
    trials: TrialSet | None
    exclusion: Exclusion | None = None
    reason: str = ""


@dataclass
class BreakingSearch:
    """Measures levels and searches for the threshold; starts of another `version` (`version_here`) are ignored."""

    plan: BreakingPlan
    at: Callable[[float], ScenarioSpec]
    measure: Callable[[ScenarioSpec], TrialSet]
    store: BreakingStore
    observer: CampaignObserver
    version: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], float] = time.monotonic
    _starts: list[_Start] = field(default_factory=list)
    _bank: dict[float, list[TrialSet]] = field(default_factory=dict)
    _limit: float | None = None

    def __post_init__(self) -> None:
        self._bisection = Bisection(self.plan.search)

    def run(self) -> BreakingResult:
        """Searches until the threshold is found, or trials or time are spent; complete starts are stored."""
        self._find_kept()
        limit, stopped = TimeLimit(self.plan.time_limit_s, self.now), ""
        while (level := self._bisection.next_level()) is not None:
            if kept := self._bank.get(level):
                self._add(_Start(level, kept.pop(0)))
                continue
            if not limit.allows_start():
                stopped = "the time limit ended it: the same command goes on from here"
                break
            self._announce(level)
            self._add(self._measured(level))
            self._note_last(level)
        if not stopped:
            for file, stored in self.store.documents().items():
                if stored.version != self.version or self._usable(stored):
                    file.unlink(missing_ok=True)
        return conclude(self.plan, self._bisection, self._levels(), self._ended_early(), stopped=stopped)

    def _find_kept(self) -> None:
        self.store.recover(self.observer)
        kept = self.store.documents().values()
        usable = [each for stored in kept for each in self._usable(stored).items()]
        for level, trials in usable:
            self._bank.setdefault(level, []).append(trials)
        if usable:
            self.observer.note(f"continues what was interrupted; starts that are there: {len(usable)}")
        if left_out := len(kept) - len(usable):
            self.observer.note(f"starts of another version or setting, left out: {left_out}")

    def _usable(self, stored: StoredTrials[float]) -> Mapping[float, TrialSet]:
        """Trials by level, if they are of this version and these settings; another search may resume from others."""
        if stored.version != self.version:
            return {}
        return {level: trials for level, trials in stored.sets.items() if stored.asked == plain_spec(self.at(level))}

    def _announce(self, level: float) -> None:
        bisection, spec = self._bisection, self.at(level)
        self.observer.expect(round(bisection.most_left * motions_of(spec) / spec.trials))
        known = [f"{each.level:g} {each.standing}" for each in (bisection.holds, bisection.breaks) if each is not None]
        so_far = f"; {', '.join(known)}" if known else ""
        left = f"{bisection.trials} trials, at most {bisection.most_left} more"
        self.observer.doing(f"start {bisection.starts + 1} at {level:g}{so_far}; {left}")

    def _measured(self, level: float) -> _Start:
        spec = self.at(level)
        try:
            trials = self.measure(spec)
        except BringUpFailed as error:
            return _Start(level, None, Exclusion.NOT_STARTED, error.message)
        except LoadFailed as error:
            return _Start(level, None, Exclusion.UNREACHED, error.message)
        except (RecordingFailed, TraceUnreadable) as error:  # a load can starve the tracer, too
            return _Start(level, None, Exclusion.UNMEASURED, error.message)
        self.store.keep(StoredTrials(plain_spec(spec), self.version, {level: trials}))
        return _Start(level, trials)

    def _note_last(self, level: float) -> None:
        last, trials = self._bisection.records[level].batches[-1], self._starts[-1].trials
        if trials is not None and trials.incomplete:
            self.observer.note(f"at {level:g} a start ended early: {trials.incomplete}")
        if last.unvalued and trials is not None:
            few = f"{last.unvalued} of {last.succeeded} trials that succeeded have no {self.plan.criterion.metric_name}"
            self.observer.note(f"at {level:g} {few}: {self._unvalued(trials)[0]}")
        if last.exclusion is not None:
            self.observer.note(f"at {level:g} {last.exclusion}: {last.reason}")

    def _add(self, start: _Start) -> None:
        """Adds a start. A start at the calm level may change the limit, so that all starts are evaluated again."""
        self._starts.append(start)
        calm_level = self.plan.search.scale.calm
        if start.level != calm_level:
            self._bisection.add(self._batch(start))
            return
        self._limit = self.plan.criterion.limit(self._levels().get(calm_level))
        self._bisection = Bisection(self.plan.search)
        for each in self._starts:
            self._bisection.add(self._batch(each))

    def _counted(self) -> Iterator[tuple[float, TrialSet]]:
        for start in self._starts:
            if start.trials is not None and not shortfall_of(start.trials):
                yield start.level, start.trials

    def _levels(self) -> dict[float, TrialSet]:
        """All trials that count by level, from the calm end on."""
        found: dict[float, TrialSet] = {}
        for level, trials in self._counted():
            found[level] = append_start(found.get(level), trials)
        return dict(sorted(found.items(), key=lambda each: self.plan.search.scale.place(each[0])))

    def _ended_early(self) -> dict[float, tuple[str, ...]]:
        """Reasons of starts that ended with a failed motion between trials, by level."""
        found: dict[float, tuple[str, ...]] = {}
        for level, trials in self._counted():
            if has_lost_motion(trials):
                found[level] = (*found.get(level, ()), trials.incomplete)
        return found

    def _batch(self, start: _Start) -> Batch:
        if start.trials is None:
            return Batch(start.level, exclusion=start.exclusion, reason=start.reason)
        if reason := shortfall_of(start.trials):
            reached = reached_level(start.trials, self.plan.address, start.level)
            return Batch(start.level, exclusion=Exclusion.UNREACHED, reason=reason, achieved=reached)
        known = [self.plan.criterion.is_broken(trial, self._limit) for trial in start.trials.trials]
        succeeded, unvalued = start.trials.successes, len(self._unvalued(start.trials))
        counted = [each for each in with_lost_motion(known, start.trials) if each is not None]
        if not counted:
            reason = start.trials.incomplete or "no trial has a value of the metric that is asked about"
            exclusion = Exclusion.UNMEASURED
            return Batch(start.level, exclusion=exclusion, reason=reason, succeeded=succeeded, unvalued=unvalued)
        counted = counted[: self.plan.search.trials_per_start]  # the test assumes at most so many trials of a start
        return Batch(start.level, len(counted), sum(counted), succeeded=succeeded, unvalued=unvalued)

    def _unvalued(self, trials: TrialSet) -> list[str]:
        """Reasons why successful trials have no value of the criterion's metric, one per trial."""
        return [why for trial in trials.trials if (why := self.plan.criterion.why_unvalued(trial))]


def reached_level(trials: TrialSet, address: str, level: float) -> float | None:
    """The level that a load reached instead of the requested one; ``None`` if its proof does not contain it."""
    load, _, field_name = address.partition(".")
    proven = LOAD_SPECS[load].PROVEN.get(field_name) if load in LOAD_SPECS else None
    if proven is None:
        return None
    proofs = [proof for proof in trials.loads if proof.get("kind") == load and {*proven} <= proof.keys()]
    shares = [cast("float", proof[proven.reached]) / cast("float", proof[proven.asked]) for proof in proofs]
    return level * min(shares) if shares else None


_LINEAR: Final = ("percent", "cpus", "workers", "reserved")
"""Suffixes of fields with linearly spaced levels."""

_LESS_IS_HARSHER: Final = frozenset({"stack.planning_time_s"})
"""Addresses, other than those of loads, where smaller values are harsher."""

_HOW_MUCH_IS_MEASURED: Final = frozenset({"trials", "max_trials", "warmup", "success_rate"})


class Harsher(StrEnum):
    """Values of ``--harsher``: the direction in which more trials break."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True)
class VariedField:
    address: str
    spec: ScenarioSpec

    @classmethod
    def find(cls, address: str, spec: ScenarioSpec) -> VariedField:
        """Raises `ConfigurationError` for an unknown address, and for a field that is not numeric or may not vary."""
        whole = canonical(address)
        if whole in _HOW_MUCH_IS_MEASURED:
            raise ConfigurationError(
                f"{whole} says how much is measured: nothing breaks by it",
                remedy="vary a load or a setting of the stack, such as dds_flood.rate",
            )
        default = known_addresses().get(whole)
        if isinstance(default, bool) or not isinstance(default, int | float):
            raise ConfigurationError(
                f"{whole} is no number: there is no level of it at which something breaks",
                remedy=f"try its values one by one: ldos sweep --over {whole}=…",
            )
        return cls(whole, spec)

    @property
    def is_whole(self) -> bool:
        return isinstance(known_addresses()[self.address], int)

    def at(self, level: float) -> ScenarioSpec:
        return assign(self.spec, self.address, int(level) if self.is_whole else level)

    def scale(
        self, low: float, high: float, *, precision: float, spacing: Spacing | None, harsher: Harsher | None
    ) -> LevelScale:
        """The scale of levels between two ends; raises `ConfigurationError` if the field cannot have their values."""
        owner, _, name = self.address.rpartition(".")
        is_falling = harsher is Harsher.LOWER
        if harsher is None:
            of_load = owner in LOAD_SPECS and name in LOAD_SPECS[owner].LESS_IS_HARSHER
            is_falling = of_load or self.address in _LESS_IS_HARSHER
        scale = LevelScale(
            low=low,
            high=high,
            spacing=spacing or (Spacing.LINEAR if name.rpartition("_")[2] in _LINEAR or low <= 0 else Spacing.LOG),
            precision=precision,
            is_whole=self.is_whole,
            is_falling=is_falling,
        )
        for level in (low, high):
            self.at(level)
        return scale
