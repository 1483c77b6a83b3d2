"""Injects known faults into the stack, one after another, and checks that the gate finds them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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
    without_verdict,
)
from pytest_ldos.campaign.sequence import append_start
from pytest_ldos.judge.gate.policy import Policy
from pytest_ldos.judge.gate.reasons import Describe
from pytest_ldos.measure.trial.record import TrialSet, all_series
from pytest_ldos.scenario.model import ScenarioSpec
from pytest_ldos.scenario.words import StackKind

NO_FAULT = "none"
"""Name of the point without a fault: an equal version."""


@dataclass(frozen=True)
class Point:
    """One fault of one size."""

    fault: PlantableFault
    size: float


@dataclass(frozen=True, kw_only=True)
class SelfTestPlan:
    """Plan of a self-test.

    Attributes:
        spec: scenario; its number of trials applies to each point.
        points: without those of size 0.
        notes: omitted faults, with reasons.
    """

    spec: ScenarioSpec
    points: tuple[Point, ...]
    notes: tuple[str, ...] = ()

    @property
    def starts(self) -> int:
        """Number of stack starts: two of the base, one of the equal version, and one per point."""
        return 3 + len(self.points)


@dataclass(frozen=True, kw_only=True)
class SelfTestResult:
    """Result of a self-test.

    Attributes:
        base: trials of the version without faults.
        detections: the equal version first, then by fault and size.
    """

    base: TrialSet
    detections: tuple[Detection, ...]
    notes: tuple[str, ...]


def plan_self_test(
    spec: ScenarioSpec,
    kind: StackKind,
    *,
    faults: Sequence[str] = (),
    sizes: Sequence[float] = (),
    quick: bool = False,
) -> SelfTestPlan:
    """Chooses faults and sizes; by default all that the stack supports.

    Raises:
        ConfigurationError: an unknown fault, an invalid size, or a fault that this stack does not
            support.
    """
    refuse_unknown(dict.fromkeys(faults), FAULTS, "fault")
    chosen = [FAULTS[name] for name in dict.fromkeys(faults)] or list(FAULTS.values())
    impossible = [each.name for each in chosen if each.needs_patch] if kind is StackKind.ROS2 else []
    if faults and impossible:
        raise ConfigurationError(
            f"{', '.join(impossible)} cannot be planted in a stack of ROS 2 nodes without patching them",
            remedy=f"possible are: {', '.join(each.name for each in FAULTS.values() if not each.needs_patch)}",
        )
    possible = [each for each in chosen if each.name not in impossible]
    notes = (f"left out, for they would need patched nodes: {', '.join(impossible)}",) if impossible else ()
    usual = {each.name: _usual_sizes(each, quick=quick, is_named=bool(faults)) for each in possible}
    points = [
        Point(fault, size) for fault in possible for size in (_checked(fault, sizes) if sizes else usual[fault.name])
    ]
    return SelfTestPlan(spec=spec, points=tuple(points), notes=notes)


def _usual_sizes(fault: PlantableFault, *, quick: bool, is_named: bool) -> tuple[float, ...]:
    if not quick:
        return fault.sizes
    return fault.quick_sizes or (fault.sizes[-1:] if is_named else ())


def _checked(fault: PlantableFault, asked: Sequence[float]) -> list[float]:
    """The validated sizes, without 0, which is always measured."""
    for size in asked:
        if not 0 <= size <= fault.largest:
            raise ConfigurationError(
                f"{fault.name} of {fault.describe(size)} makes no sense",
                remedy=f"between 0 and {fault.describe(fault.largest)}; shares are written as 0.3",
            )
    return sorted({size for size in asked if size})


Measure = Callable[[ScenarioSpec, int, str], TrialSet]
"""Measures the trials of one start, given its scenario, its block number and a label."""


def run_self_test(
    plan: SelfTestPlan,
    measure: Measure,
    policy_of: Callable[[TrialSet], Policy],
    *,
    describe: Describe,
    draws: int = DRAWS,
) -> SelfTestResult:
    """Measures all points and judges them.

    The version without a fault is started before and after the others, so that drift over the session
    is not attributed to a fault.

    Args:
        policy_of: returns the gate's policy for trials measured here.
        describe: describes the reason why there is no verdict.
        draws: number of resampled sessions for each size.

    Raises:
        SelfTestFailed: the version without a fault cannot be measured.
        BringUpFailed, LoadFailed: the version without a fault could not be started.
    """
    first = _require_success(measure(plan.spec, 0, "no fault"))
    medians = _medians(first)
    _require_medians(plan, medians)
    equal = _require_success(measure(plan.spec, 1, "no fault, as another version"))
    heads = {
        point: _measure_point(plan.spec, point, medians, measure, block)
        for block, point in enumerate(plan.points, start=2)
    }
    base, notes = _measure_base_again(plan, first, measure)
    detector = Detector(base=base, policy=policy_of(base), describe=describe, draws=draws)
    reference = _Reference(detector, equal, medians, plan.spec)
    detections = [reference.detect_nothing(), *(reference.detect(point, head) for point, head in heads.items())]
    return SelfTestResult(base=base, detections=tuple(detections), notes=(*plan.notes, *notes))


def _measure_base_again(plan: SelfTestPlan, first: TrialSet, measure: Measure) -> tuple[TrialSet, tuple[str, ...]]:
    """Adds the second start of the version without a fault; if it fails, only the first one counts."""
    try:
        return append_start(first, measure(plan.spec, plan.starts - 1, "no fault")), ()
    except (BringUpFailed, LoadFailed) as error:
        return first, (f"without a fault, the second start failed, and only the first counts: {error.message}",)


def _measure_point(
    spec: ScenarioSpec, point: Point, medians: Medians, measure: Measure, block: int
) -> TrialSet | LdosError:
    stack = point.fault.in_stack(spec.stack, point.size, medians)
    try:
        return measure(
            dataclasses.replace(spec, stack=stack), block, f"{point.fault.title} {point.fault.describe(point.size)}"
        )
    except (BringUpFailed, LoadFailed) as error:
        return error


@dataclass(frozen=True)
class _Reference:
    """Reference for versions with faults.

    Attributes:
        equal: a version without a fault, judged like the others.
        medians: medians of the metrics without a fault.
    """

    detector: Detector
    equal: TrialSet
    medians: Medians
    spec: ScenarioSpec

    def detect_nothing(self) -> Detection:
        """Judges the equal version.

        Raises:
            SelfTestFailed: it could not be judged.
        """
        found = self.detector.detect(NO_FAULT, 0.0, self.equal, path="", promised=None)
        if found.problem:
            raise SelfTestFailed(f"a version without a fault cannot be judged: {found.problem}")
        return found

    def detect(self, point: Point, head: TrialSet | LdosError) -> Detection:
        if isinstance(head, LdosError):
            return without_verdict(point.fault.name, point.size, head)
        promised = self._promise(point)
        return self.detector.detect(point.fault.name, point.size, head, path=point.fault.path, promised=promised)

    def _promise(self, point: Point) -> Promised | None:
        if point.fault.raises_failures:
            return Promised(SUCCESS, point.size, self._failure_rate)
        known = point.fault.known(point.size, self.medians, self.spec.stack)
        if known is None:
            return None
        return Promised(known.metric, known.effect, self.detector.mde(self.equal, known.metric))

    @cached_property
    def _failure_rate(self) -> float:
        return self.detector.smallest_failure_rate(self.equal)


def _require_success(trials: TrialSet) -> TrialSet:
    if trials.trials and any(trial.succeeded for trial in trials.trials):
        return trials
    reason = trials.incomplete or (trials.trials[0].message if trials.trials else "no trial was made")
    raise SelfTestFailed(
        f"without any fault, no trial succeeded: {reason}", remedy="make the scenario work first: pytest -m baseline"
    )


def _require_medians(plan: SelfTestPlan, medians: Medians) -> None:
    for fault in (point.fault for point in plan.points):
        if fault.share_of and fault.share_of not in medians:
            raise SelfTestFailed(
                f"{fault.name} is a share of {fault.share_of}, which no trial without a fault has",
                remedy="leave it out: --faults",
            )


def _medians(trials: TrialSet) -> Mapping[str, float]:
    series = all_series(trials)
    return {name: float(np.median(each.finite)) for name, each in series.items() if each.finite}
