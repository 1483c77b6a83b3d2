"""Searches for the level of a load, or of a setting, at which an arm breaks.

Results are written after each stack start, so that an interrupted search can be resumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol, cast

from pytest_ldos.base.errors import BringUpFailed, ConfigurationError, LoadFailed, RecordingFailed, TraceUnreadable
from pytest_ldos.campaign.bisection import Batch, Bisection, Exclusion, LevelRecord
from pytest_ldos.campaign.breaking_result import BreakingEvidence, BreakingPlan, BreakingResult, KeptStart, conclude
from pytest_ldos.campaign.criterion import has_lost_motion, with_lost_motion
from pytest_ldos.campaign.kept_documents import plain_spec
from pytest_ldos.campaign.level_scale import LevelScale, Spacing
from pytest_ldos.campaign.sequence import append_start
from pytest_ldos.measure.trial.record import TrialSet
from pytest_ldos.scenario.addresses import assign, canonical, known_addresses
from pytest_ldos.scenario.loads.registry import LOAD_SPECS
from pytest_ldos.scenario.model import ScenarioSpec


class BreakingObserver(Protocol):
    """Observer of a search."""

    def begin_start(self, level: float, bisection: Bisection) -> None:
        """A stack is being started for some trials at a level."""

    def note(self, text: str) -> None:
        """A remark for the user."""


@dataclass(frozen=True)
class _Start:
    """Result of one start: trials, or the reason why there are none."""

    level: float
    trials: TrialSet | None
    exclusion: Exclusion | None = None
    reason: str = ""


@dataclass
class BreakingSearch:
    """Measures levels and searches for the threshold.

    Attributes:
        at: returns the scenario at a level.
        measure: returns the trials of one stack start.
        version: identity of version and machine (`campaign.measured_version`); starts of another version are
            ignored.
        now: time of a clock, in seconds.
    """

    plan: BreakingPlan
    at: Callable[[float], ScenarioSpec]
    measure: Callable[[ScenarioSpec], TrialSet]
    evidence: BreakingEvidence
    observer: BreakingObserver
    version: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], float] = time.monotonic
    _starts: list[_Start] = field(default_factory=list)
    _bank: dict[float, list[TrialSet]] = field(default_factory=dict)
    _limit: float | None = None

    def __post_init__(self) -> None:
        self._bisection = Bisection(self.plan.search)

    def run(self) -> BreakingResult:
        """Searches until the threshold is found, or trials or time are spent; see `BreakingResult.finding`.

        Raises:
            Unavailable: see `measure`; complete starts are stored.
            RecordUnreadable: a stored start cannot be opened, although it may be intact.
        """
        self._find_kept()
        began, measured, stopped = self.now(), 0, ""
        while (level := self._bisection.next_level()) is not None:
            if kept := self._bank.get(level):
                self._add(_Start(level, kept.pop(0)))
                continue
            if not self._has_time(began, measured):
                stopped = "the time limit ended it: the same command goes on from here"
                break
            self.observer.begin_start(level, self._bisection)
            self._add(self._measured(level))
            measured += 1
            self._tell(level)
        if not stopped:
            self.evidence.drop(but=self._is_of_another_setting)
        return conclude(self.plan, self._bisection, self._levels(), self._ended_early(), stopped=stopped)

    def _find_kept(self) -> None:
        """Loads starts of an earlier call with the same version and settings; sets damaged ones aside."""
        for damaged in self.evidence.set_damaged_aside():
            self.observer.note(f"damaged, set aside and measured again: {damaged}")
        left_out = 0
        for kept in self.evidence.starts():
            if kept.version == self.version and not self._is_of_another_setting(kept):
                self._bank.setdefault(kept.level, []).append(kept.trials)
            else:
                left_out += 1
        found = sum(map(len, self._bank.values()))
        if found:
            self.observer.note(f"continues what was interrupted; starts that are there: {found}")
        if left_out:
            self.observer.note(f"starts of another version or setting, left out: {left_out}")

    def _is_of_another_setting(self, kept: KeptStart) -> bool:
        """True if a start is of this version, but of other settings."""
        return kept.version == self.version and kept.asked != plain_spec(self.at(kept.level))

    def _has_time(self, began: float, measured: int) -> bool:
        if self.plan.time_limit_s is None or not measured:
            return True
        spent = self.now() - began
        return spent + spent / measured <= self.plan.time_limit_s

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
        self.evidence.keep(level, spec, trials, self.version)
        return _Start(level, trials)

    def _tell(self, level: float) -> None:
        """Reports remarks on the last start."""
        record: LevelRecord = self._bisection.records[level]
        last, trials = record.batches[-1], self._starts[-1].trials
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

    def _levels(self) -> dict[float, TrialSet]:
        """All trials that count at each level, from the calm end on."""
        found: dict[float, TrialSet] = {}
        for start in self._starts:
            if start.trials is not None and not shortfall_of(start.trials):
                found[start.level] = append_start(found.get(start.level), start.trials)
        return dict(sorted(found.items(), key=lambda each: self.plan.search.scale.place(each[0])))

    def _ended_early(self) -> dict[float, tuple[str, ...]]:
        """Messages of starts that ended with a failed motion between trials, by level."""
        found: dict[float, tuple[str, ...]] = {}
        for start in self._starts:
            if start.trials is not None and not shortfall_of(start.trials) and has_lost_motion(start.trials):
                found[start.level] = (*found.get(start.level, ()), start.trials.incomplete)
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


def shortfall_of(trials: TrialSet) -> str:
    """Shortfall of the first load that was not as requested; empty if all were."""
    return next((str(proof["shortfall"]) for proof in trials.loads if proof.get("shortfall")), "")


def reached_level(trials: TrialSet, address: str, level: float) -> float | None:
    """The level that a load reached instead of the requested one; ``None`` if its proof does not contain it."""
    load, _, field_name = address.partition(".")
    proven = LOAD_SPECS[load].PROVEN.get(field_name) if load in LOAD_SPECS else None
    if proven is None:
        return None
    proofs = [proof for proof in trials.loads if proof.get("kind") == load and {*proven} <= proof.keys()]
    # If a guard withheld everything, nothing was requested, which is always reached.
    numbers = ([cast("float", proof[key]) for key in (proven.reached, proven.asked)] for proof in proofs)
    shares = [reached / asked if asked else 1.0 for reached, asked in numbers]
    return level * min(shares) if shares else None


_LINEAR: Final = ("percent", "cpus", "workers", "reserved")
"""Suffixes of field names with linearly spaced levels; others are spaced logarithmically."""

_LESS_IS_HARSHER: Final = frozenset({"stack.planning_time_s"})
"""Addresses, other than those of loads, where smaller values are harsher."""

_HOW_MUCH_IS_MEASURED: Final = frozenset({"trials", "max_trials", "warmup", "success_rate"})
"""Fields that a search controls itself and cannot vary."""


class Harsher(StrEnum):
    """Values of ``--harsher``: the direction in which more trials break."""

    HIGHER = "higher"
    LOWER = "lower"


@dataclass(frozen=True)
class VariedField:
    """A numeric field.

    Attributes:
        address: full address.
        spec: its scenario, with the other settings.
    """

    address: str
    spec: ScenarioSpec

    @classmethod
    def find(cls, address: str, spec: ScenarioSpec) -> VariedField:
        """Finds the field of an address.

        Raises:
            ConfigurationError: an unknown address (the message has the nearest match), or a field that cannot be
                varied.
        """
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
        """True if only whole numbers are possible."""
        return isinstance(known_addresses()[self.address], int)

    @property
    def _less_is_harsher(self) -> bool:
        owner, _, name = self.address.rpartition(".")
        return self.address in _LESS_IS_HARSHER or (owner in LOAD_SPECS and name in LOAD_SPECS[owner].LESS_IS_HARSHER)

    def at(self, level: float) -> ScenarioSpec:
        """The scenario at a level.

        Raises:
            ConfigurationError: the field cannot have this value.
        """
        return assign(self.spec, self.address, int(level) if self.is_whole else level)

    def scale(
        self, low: float, high: float, *, precision: float, spacing: Spacing | None, harsher: Harsher | None
    ) -> LevelScale:
        """The scale of levels between two ends, both of which must be valid for the field.

        Raises:
            ConfigurationError: see `LevelScale` and `at`.
        """
        counted = self.address.rpartition(".")[2].rpartition("_")[2] in _LINEAR or low <= 0
        less = self._less_is_harsher if harsher is None else harsher is Harsher.LOWER
        scale = LevelScale(
            low=low,
            high=high,
            spacing=spacing or (Spacing.LINEAR if counted else Spacing.LOG),
            precision=precision,
            is_whole=self.is_whole,
            is_falling=less,
        )
        for level in (low, high):
            self.at(level)
        return scale
