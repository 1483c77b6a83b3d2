"""Faults injected by a self-test, and the evaluation of the gate's verdicts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np

from pytest_ldos.base.ros2 import STATE_FEEDBACK
from pytest_ldos.campaign.calibrate import SEED, Share
from pytest_ldos.campaign.noise import assemble
from pytest_ldos.judge.gate.case import Policy, failures_became_more, missed_expectations
from pytest_ldos.judge.gate.decide import GateResult, decide
from pytest_ldos.judge.gate.reasons import Describe
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.judge.summary import explain
from pytest_ldos.measure.metrics.latency import T1
from pytest_ldos.measure.metrics.regularity import T3
from pytest_ldos.measure.trial.record import Look, Trial, TrialSet
from pytest_ldos.robot.stack.goals import OutcomeClass
from pytest_ldos.scenario.model import FaultSpec, StackSpec

SUCCESS: Final = "success"
"""Name of the success rate among the metrics."""

_POWER: Final = 0.8
_CLEARLY: Final = 1.5
DRAWS: Final = 60
_FIRST_LOOK: Final = 5
_RATES: Final = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


class Keeping(StrEnum):
    KEPT = "kept"
    BROKEN = "broken"
    BY_CHANCE = "chance"
    FALSE_ALARM = "false alarm"
    NONE = "none"


@dataclass(frozen=True)
class Promised:
    """A known effect on a metric, or on the failure rate (`SUCCESS`), with the gate's MDE."""

    what: str
    effect: float
    mde: float

    @property
    def is_due(self) -> bool:
        return self.effect >= self.mde

    @property
    def is_clear(self) -> bool:
        """True if the effect is so large that it is hardly ever missed; the MDE is missed in 20 % of sessions."""
        return self.effect >= _CLEARLY * self.mde


@dataclass(frozen=True, kw_only=True)
class Detection:
    """Result for one size of one fault.

    Attributes:
        verdict: at the look that decided, or at the last one.
        spent: trials of the faulty version until detection, or all.
        seen_by: metrics that regressed; `SUCCESS` for failures.
        blamed: the segment of the fault's path with the largest increase, if its interval excludes zero.
        share: share of resampled sessions in which the fault was found.
        promised: ``None`` if no effect of the fault is known.
        problem: reason why there is no verdict; empty if there is one.
    """

    fault: str
    size: float
    verdict: Verdict
    spent: int = 0
    seen_by: tuple[str, ...] = ()
    blamed: str = ""
    share: Share = field(default_factory=lambda: Share(0, 0))
    promised: Promised | None = None
    problem: str = ""

    @property
    def is_found(self) -> bool:
        return self.verdict is Verdict.REGRESSED

    @property
    def keeping(self) -> Keeping:
        """A missed effect breaks the promise if it was clear and is rarely found in bootstrap resamples."""
        if self.size == 0:
            return Keeping.FALSE_ALARM if self.is_found else Keeping.KEPT
        if self.problem or self.promised is None or not self.promised.is_due:
            return Keeping.NONE
        if self.is_found:
            return Keeping.KEPT
        return Keeping.BROKEN if self.promised.is_clear and self.share.high < _POWER else Keeping.BY_CHANCE


@dataclass(frozen=True, kw_only=True)
class Detector:
    """Compares faulty versions with one without faults, the base, from one or several starts."""

    base: TrialSet
    policy: Policy
    describe: Describe
    draws: int = DRAWS

    def detect(self, fault: str, size: float, head: TrialSet, *, path: str, promised: Promised | None) -> Detection:
        """Judges a faulty version.

        Its share is that of bootstrap resamples (of both versions, within each start) in which the fault is found.
        """
        result, spent = self._look(head)
        rng, found = np.random.default_rng(SEED), 0
        for _ in range(self.draws):
            drawn = decide(_redrawn(head, rng), _redrawn(self.base, rng), self.policy)
            found += drawn.verdict is Verdict.REGRESSED
        regressed = (each.metric for each in result.comparisons if each.verdict is Verdict.REGRESSED)
        return Detection(
            fault=fault,
            size=size,
            verdict=result.verdict,
            spent=spent,
            seen_by=(*((SUCCESS,) if self._fails_more(head) else ()), *regressed),
            blamed=_blame(self.base, head, path),
            share=Share(found, self.draws),
            promised=promised,
            problem=self.describe(result.reasons[0]) if result.verdict is Verdict.INVALID else "",
        )

    def mde(self, head: TrialSet, metric: str) -> float:
        """The MDE of a metric, from an equal version."""
        comparison = decide(head, self.base, self.policy).comparison(metric)
        return math.inf if comparison is None else comparison.mde

    def smallest_failure_rate(self, head: TrialSet) -> float:
        """The smallest of the given failure rates that is found with probability 0.8 in an otherwise equal version."""
        rng = np.random.default_rng(SEED)
        for rate in _RATES:
            heads = [with_failures(head, list(rng.random(len(head.trials)) < rate)) for _ in range(self.draws)]
            if sum(self._fails_more(each) for each in heads) >= _POWER * self.draws:
                return rate
        return math.inf

    def _look(self, head: TrialSet) -> tuple[GateResult, int]:
        """The verdict and its trials; the first look with a regression ends the session."""
        total, base = len(head.trials), len(self.base.trials)
        looks = tuple(Look(each, base) for each in looks_at(total))
        for number, look in enumerate(looks[:-1], start=1):
            seen = head.trials[: look.head]
            so_far = dataclasses.replace(head, trials=seen, looks=looks[:number], last_look=looks[-1])
            result = decide(so_far, self.base, self.policy)
            if result.verdict is Verdict.REGRESSED:
                return result, look.head
        return decide(dataclasses.replace(head, looks=looks, last_look=looks[-1]), self.base, self.policy), total

    def _fails_more(self, head: TrialSet) -> bool:
        return bool(missed_expectations(head, self.policy)) or failures_became_more(head, self.base, self.policy)


def looks_at(trials: int) -> list[int]:
    """Numbers of trials at the looks: after the first five, and at the end."""
    return [_FIRST_LOOK, trials] if trials > _FIRST_LOOK else [trials]


def with_failures(trials: TrialSet, failed: Sequence[bool]) -> TrialSet:
    changed = tuple(
        dataclasses.replace(trial, outcome=OutcomeClass.PLANNING_FAILED) if fails else trial
        for trial, fails in zip(trials.trials, failed, strict=True)
    )
    return dataclasses.replace(trials, trials=changed)


def is_trustworthy(detections: Sequence[Detection]) -> bool:
    """True if the gate broke no promise and raised no false alarm."""
    return not any(each.keeping in {Keeping.BROKEN, Keeping.FALSE_ALARM} for each in detections)


def _redrawn(trials: TrialSet, rng: np.random.Generator) -> TrialSet:
    blocks: Mapping[int, list[Trial]] = {trial.block: [] for trial in trials.trials}
    for trial in trials.trials:
        blocks[trial.block].append(trial)
    drawn = [(block, [own[each] for each in rng.integers(len(own), size=len(own))]) for block, own in blocks.items()]
    return assemble(trials, drawn, session=trials.session)


def _blame(base: TrialSet, head: TrialSet, path: str) -> str:
    """The segment of a path with the largest increase, and its change; empty if not significant."""
    found = explain(base, head).get(path) if path else None
    if found is None or not found.changes:
        return ""
    first = max(found.changes, key=lambda change: change.change_ns)
    return f"{first.segment} {first.change_ns / 1e6:+.2f} ms" if first.low_ns > 0 else ""


Medians = Mapping[str, float]
"""Medians without a fault, by metric, in the metric's unit."""

Plant = Callable[[FaultSpec, float, Medians], FaultSpec]


@dataclass(frozen=True, kw_only=True)
class KnownEffect:
    """Relative increase of a metric caused by a fault."""

    metric: str
    effect: float


@dataclass(frozen=True, kw_only=True)
class PlantableFault:
    """A fault with an adjustable size.

    Attributes:
        unit: unit of the size; ``%`` if it is a share.
        sizes, quick_sizes: default sizes without 0, and those of a quick self-test, for faults with a known effect.
        plant: injects the fault, given its size and the metrics' medians without it.
        known: returns its effect, if that depends on the fault only.
        raises_failures: True if it makes goals fail at a rate equal to its size.
        path: causal path of the fault; empty if there is none.
        needs_patch: True if it requires a modified stack of real ROS 2 nodes.
        share_of: metric to whose median a size in % refers; empty for none.
    """

    name: str
    title: str
    unit: str
    sizes: tuple[float, ...]
    largest: float
    plant: Plant
    known: Callable[[float, Medians, StackSpec], KnownEffect | None] = lambda size, medians, stack: None
    quick_sizes: tuple[float, ...] = ()
    raises_failures: bool = False
    path: str = ""
    needs_patch: bool = False
    share_of: str = ""

    def describe(self, size: float) -> str:
        return f"{100 * size:g} %" if self.unit == "%" else f"{size:g} {self.unit}"

    def in_stack(self, stack: StackSpec, size: float, medians: Medians) -> StackSpec:
        return dataclasses.replace(stack, faults=self.plant(stack.faults, size, medians)) if size else stack


def _set(field: str) -> Plant:
    return lambda faults, size, medians: dataclasses.replace(faults, **{field: size})


def _longer_periods(size: float, medians: Medians, stack: StackSpec) -> KnownEffect | None:
    """Effect on T3, a root mean square, of equally longer periods."""
    usual_ms = medians.get(T3.name, 0.0)
    if usual_ms <= 0:
        return None
    longer_ms = size / (1 - size) * 1000 / stack.control_rate_hz
    return KnownEffect(metric=T3.name, effect=math.hypot(usual_ms, longer_ms) / usual_ms - 1)


FAULTS: Final[Mapping[str, PlantableFault]] = {
    fault.name: fault
    for fault in (
        PlantableFault(
            name="planning_delay",
            title="planner delay (share of T1)",
            unit="%",
            sizes=(0.15, 0.3, 0.6),
            quick_sizes=(0.6,),
            largest=10.0,
            plant=lambda faults, size, medians: dataclasses.replace(
                faults, planning_delay_ms=faults.planning_delay_ms + size * medians[T1.name]
            ),
            known=lambda size, medians, stack: KnownEffect(metric=T1.name, effect=size),
            path=T1.path,
            share_of=T1.name,
        ),
        PlantableFault(
            name="control_rate_drop",
            title="control-rate drop",
            unit="%",
            sizes=(0.02, 0.05, 0.2),
            quick_sizes=(0.2,),
            largest=0.9,
            plant=_set("control_rate_drop"),
            known=_longer_periods,
        ),
        PlantableFault(
            name="transport_delay",
            title="transport delay of joint states",
            unit="ms",
            sizes=(1.0, 4.0, 8.0),
            largest=1000.0,
            plant=lambda faults, size, medians: dataclasses.replace(
                faults, transport_delay_ms=faults.transport_delay_ms + size
            ),
            path=STATE_FEEDBACK,
            needs_patch=True,
        ),
        PlantableFault(
            name="callback_delay",
            title="delay of the callback that takes joint states",
            unit="ms",
            sizes=(1.0, 4.0, 8.0),
            largest=1000.0,
            plant=_set("callback_delay_ms"),
            path=STATE_FEEDBACK,
        ),
        PlantableFault(
            name="dropped_goals",
            title="dropped goals (rate)",
            unit="%",
            sizes=(0.1, 0.3, 0.6),
            quick_sizes=(0.6,),
            largest=1.0,
            plant=_set("failure_rate"),
            raises_failures=True,
        ),
        PlantableFault(
            name="cpu_steal", title="CPU steal", unit="%", sizes=(0.2, 0.5, 0.8), largest=0.9, plant=_set("cpu_steal")
        ),
    )
}
