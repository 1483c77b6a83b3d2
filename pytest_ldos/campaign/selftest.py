"""Injects known faults into the stack, one after another, and checks that the gate finds them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from pytest_ldos.base.errors import (
    BringUpFailed,
    ConfigurationError,
    LdosError,
    LoadFailed,
    SelfTestFailed,
    refuse_unknown,
)
from pytest_ldos.campaign.detection import (
    DRAWS,
    FAULTS,
    SUCCESS,
    Detection,
    Detector,
    Medians,
    PlantableFault,
    Promised,
)
from pytest_ldos.campaign.starts import append_start
from pytest_ldos.judge.gate.case import Policy
from pytest_ldos.judge.gate.reasons import Describe
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.measure.trial.record import TrialSet, all_series
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.words import StackKind


class Point(NamedTuple):
    fault: PlantableFault
    size: float


@dataclass(frozen=True, kw_only=True)
class SelfTestPlan:
    """Plan of a self-test; `points` exclude size 0, and `notes` name omitted faults with reasons."""

    spec: ScenarioSpec
    points: tuple[Point, ...]
    notes: tuple[str, ...] = ()

    @property
    def starts(self) -> int:
        """Number of stack starts: two of the base, one of the equal version, and one per point."""
        return 3 + len(self.points)


@dataclass(frozen=True, kw_only=True)
class SelfTestResult:
    """Result of a self-test; `detections` begin with the equal version."""

    base: TrialSet
    detections: tuple[Detection, ...]
    notes: tuple[str, ...]


def plan_self_test(
    spec: ScenarioSpec, kind: StackKind, *, faults: Sequence[str] = (), sizes: Sequence[float] = (), quick: bool = False
) -> SelfTestPlan:
    """Chooses faults and sizes; by default all that the stack supports. Size 0 is always measured.

    Raises `ConfigurationError` for an unknown fault, an invalid size, or a fault that this stack does not support.
    """
    refuse_unknown(dict.fromkeys(faults), FAULTS, "fault")
    chosen = [FAULTS[name] for name in dict.fromkeys(faults)] or list(FAULTS.values())
    impossible = [each.name for each in chosen if each.needs_patch] if kind is StackKind.ROS2 else []
    if faults and impossible:
        raise ConfigurationError(
            f"{', '.join(impossible)} cannot be planted in a stack of ROS 2 nodes without patching them",
            remedy=f"possible are: {', '.join(each.name for each in FAULTS.values() if not each.needs_patch)}",
        )
    points = []
    for fault in (each for each in chosen if each.name not in impossible):
        if wrong := [size for size in sizes if not 0 <= size <= fault.largest]:
            raise ConfigurationError(
                f"{fault.name} of {fault.describe(wrong[0])} makes no sense",
                remedy=f"between 0 and {fault.describe(fault.largest)}; shares are written as 0.3",
            )
        usual = (fault.quick_sizes or (fault.sizes[-1:] if faults else ())) if quick else fault.sizes
        points += [Point(fault, size) for size in (sorted({each for each in sizes if each}) if sizes else usual)]
    notes = (f"left out, for they would need patched nodes: {', '.join(impossible)}",) if impossible else ()
    return SelfTestPlan(spec=spec, points=tuple(points), notes=notes)


def run_self_test(
    plan: SelfTestPlan,
    measure: Callable[[ScenarioSpec, int, str], TrialSet],
    policy_of: Callable[[TrialSet], Policy],
    *,
    describe: Describe,
    draws: int = DRAWS,
) -> SelfTestResult:
    """Measures all points and judges them by the gate's policy for trials measured here.

    `measure` returns the trials of one start, given its scenario, its block number and a label. The version without a
    fault is started before and after the others, so that drift over the session is not attributed
    to a fault. If its second start fails, only the first one counts.

    Raises:
        SelfTestFailed: the version without a fault cannot be measured or judged.
        BringUpFailed, LoadFailed: the version without a fault could not be started.
    """
    base = _require_success(measure(plan.spec, 0, "no fault"))
    medians = {name: float(np.median(each.finite)) for name, each in all_series(base).items() if each.finite}
    for fault, _ in plan.points:
        if fault.share_of and fault.share_of not in medians:
            raise SelfTestFailed(
                f"{fault.name} is a share of {fault.share_of}, which no trial without a fault has",
                remedy="leave it out: --faults",
            )
    equal = _require_success(measure(plan.spec, 1, "no fault, as another version"))
    heads: list[TrialSet | LdosError] = []
    for block, (fault, size) in enumerate(plan.points, start=2):
        faulty = dataclasses.replace(plan.spec, stack=fault.in_stack(plan.spec.stack, size, medians))
        try:
            heads.append(measure(faulty, block, f"{fault.title} {fault.describe(size)}"))
        except (BringUpFailed, LoadFailed) as error:
            heads.append(error)
    notes = plan.notes
    try:
        base = append_start(base, measure(plan.spec, plan.starts - 1, "no fault"))
    except (BringUpFailed, LoadFailed) as error:
        notes = (*notes, f"without a fault, the second start failed, and only the first counts: {error.message}")
    detector = Detector(base=base, policy=policy_of(base), describe=describe, draws=draws)
    return SelfTestResult(base=base, detections=tuple(_detect(plan, detector, medians, equal, heads)), notes=notes)


def _detect(
    plan: SelfTestPlan, detector: Detector, medians: Medians, equal: TrialSet, heads: Sequence[TrialSet | LdosError]
) -> Iterator[Detection]:
    first = detector.detect("none", 0.0, equal, path="", promised=None)
    if first.problem:
        raise SelfTestFailed(f"a version without a fault cannot be judged: {first.problem}")
    yield first
    failure_rate = cache(lambda: detector.smallest_failure_rate(equal))
    for (fault, size), head in zip(plan.points, heads, strict=True):
        if isinstance(head, LdosError):
            yield Detection(fault=fault.name, size=size, verdict=Verdict.INFRA, problem=head.summary)
            continue
        known, promised = fault.known(size, medians, plan.spec.stack), None
        if fault.raises_failures:
            promised = Promised(SUCCESS, size, failure_rate())
        elif known is not None:
            promised = Promised(known.metric, known.effect, detector.mde(equal, known.metric))
        yield detector.detect(fault.name, size, head, path=fault.path, promised=promised)


def _require_success(trials: TrialSet) -> TrialSet:
    if trials.trials and any(trial.succeeded for trial in trials.trials):
        return trials
    reason = trials.incomplete or (trials.trials[0].message if trials.trials else "no trial was made")
    raise SelfTestFailed(
        f"without any fault, no trial succeeded: {reason}", remedy="make the scenario work first: pytest -m baseline"
    )
