"""Faults that a self-test plants, and their known effects."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.paths import STATE_FEEDBACK
from pytest_ldos.measure.metrics.latency import T1
from pytest_ldos.measure.metrics.regularity import T3
from pytest_ldos.scenario.model import FaultSpec, StackSpec

Medians = Mapping[str, float]
"""Medians of the metrics of the version without a fault, by name, in the metric's unit."""

Plant = Callable[[FaultSpec, float, Medians], FaultSpec]


@dataclass(frozen=True, kw_only=True)
class KnownEffect:
    """Relative increase of a metric caused by a fault."""

    metric: str
    effect: float


def _unknown(size: float, medians: Medians, stack: StackSpec) -> None:
    """No known effect: the change depends on the machine."""


@dataclass(frozen=True, kw_only=True)
class PlantableFault:
    """A fault with an adjustable size.

    Attributes:
        unit: unit of the size; ``%`` if it is a share.
        sizes, quick_sizes: default sizes, and those of a quick self-test, which is limited to faults with
            a known effect; without 0, which is no fault.
        largest: largest meaningful size.
        plant: adds the fault, given its size and the metrics' medians without it.
        known: returns its effect, if that follows from the fault alone.
        raises_failures: True if it makes goals fail at a rate equal to its size.
        path: causal path whose segments explain it; empty if there is none.
        share_of: metric whose median its size is a share of; empty for none.
        needs_patch: True if a stack of real ROS 2 nodes would have to be changed for it.
    """

    name: str
    title: str
    unit: str
    sizes: tuple[float, ...]
    largest: float
    plant: Plant
    known: Callable[[float, Medians, StackSpec], KnownEffect | None] = _unknown
    quick_sizes: tuple[float, ...] = ()
    raises_failures: bool = False
    path: str = ""
    needs_patch: bool = True
    share_of: str = ""

    def describe(self, size: float) -> str:
        """A size as displayed."""
        return f"{100 * size:g} %" if self.unit == "%" else f"{size:g} {self.unit}"

    def in_stack(self, stack: StackSpec, size: float, medians: Medians) -> StackSpec:
        """The stack with the fault; unchanged for size 0."""
        return dataclasses.replace(stack, faults=self.plant(stack.faults, size, medians)) if size else stack


def _set(field: str) -> Plant:
    """Returns a `Plant` that sets one field of the faults to the size."""

    def plant(faults: FaultSpec, size: float, medians: Medians) -> FaultSpec:
        return dataclasses.replace(faults, **{field: size})

    return plant


def _delay_planning(faults: FaultSpec, size: float, medians: Medians) -> FaultSpec:
    return dataclasses.replace(faults, planning_delay_ms=faults.planning_delay_ms + size * medians[T1.name])


def _slower_planning(size: float, medians: Medians, stack: StackSpec) -> KnownEffect:
    return KnownEffect(metric=T1.name, effect=size)


def _longer_periods(size: float, medians: Medians, stack: StackSpec) -> KnownEffect | None:
    """Effect on T3, a root mean square: the excess of every period adds to it in squares."""
    usual_ms = medians.get(T3.name, 0.0)
    if usual_ms <= 0:
        return None
    longer_ms = size / (1 - size) * 1000 / stack.control_rate_hz
    return KnownEffect(metric=T3.name, effect=math.hypot(usual_ms, longer_ms) / usual_ms - 1)


def _delay_transport(faults: FaultSpec, size: float, medians: Medians) -> FaultSpec:
    return dataclasses.replace(faults, transport_delay_ms=faults.transport_delay_ms + size)


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
            plant=_delay_planning,
            known=_slower_planning,
            path=T1.path,
            share_of=T1.name,
            needs_patch=False,
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
            needs_patch=False,
        ),
        PlantableFault(
            name="transport_delay",
            title="transport delay of joint states",
            unit="ms",
            sizes=(1.0, 4.0, 8.0),
            largest=1000.0,
            plant=_delay_transport,
            path=STATE_FEEDBACK,
        ),
        PlantableFault(
            name="callback_delay",
            title="delay of the callback that takes joint states",
            unit="ms",
            sizes=(1.0, 4.0, 8.0),
            largest=1000.0,
            plant=_set("callback_delay_ms"),
            path=STATE_FEEDBACK,
            needs_patch=False,
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
            needs_patch=False,
        ),
        PlantableFault(
            name="cpu_steal",
            title="CPU steal",
            unit="%",
            sizes=(0.2, 0.5, 0.8),
            largest=0.9,
            plant=_set("cpu_steal"),
            needs_patch=False,
        ),
    )
}
