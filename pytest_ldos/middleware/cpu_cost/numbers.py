"""What a message costs: of one round, and of all rounds of a rung."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from pytest_ldos.metrics.model import Metric
from pytest_ldos.middleware.cpu_cost.exchange import Exchange
from pytest_ldos.middleware.cpu_cost.ladder import RungRound
from pytest_ldos.middleware.cpu_cost.rungs import TITLES, Rung
from pytest_ldos.middleware.cpu_cost.spec import CpuCostSpec
from pytest_ldos.middleware.study import Round
from pytest_ldos.series import Better
from pytest_ldos.stats.median_interval import median_interval
from pytest_ldos.stats.rank_sum import estimate_shift
from pytest_ldos.units import NS_PER_US

CPU: Final = Metric(name="cpu_per_message", title="CPU time a message", unit="µs", better=Better.LOWER)
SWITCHES: Final = Metric(name="switches_per_message", title="Context switches a message", unit="", better=Better.LOWER)
CYCLES: Final = Metric(name="cycles_per_message", title="CPU cycles a message", unit="", better=Better.LOWER)
QUANTITIES: Final = (CPU, SWITCHES, CYCLES)

_TAIL: Final = 0.025


def to_round(measured: RungRound, spec: CpuCostSpec) -> Round:
    """As it is gated. Where nothing is published, the messages are those that the other rungs publish meanwhile."""
    case = f"{measured.layer.label} {TITLES[measured.rung]}: {spec.traffic}"
    if measured.rung in (Rung.NO_PUBLISHING, Rung.MANY_NODES, Rung.MANY_PARTICIPANTS):
        case += f", {spec.nodes} nodes"
    result = measured.result
    failure = result if isinstance(result, str) else why_useless(result, measured.rung, spec)
    if failure or isinstance(result, str):
        return Round(case=case, block=measured.block, failure=failure)
    return Round(
        case=case, block=measured.block, values=values_of(result, spec), details=details_of(result, measured.rung, spec)
    )


def why_useless(exchange: Exchange, rung: Rung, spec: CpuCostSpec) -> str:
    """Why a round says nothing of a message's cost; empty where it does."""
    if rung is Rung.NO_PUBLISHING:
        return ""
    if exchange.published < spec.messages:
        return f"{exchange.published} of {spec.messages} messages were published in time"
    return "" if exchange.received else "no message was received"


def values_of(exchange: Exchange, spec: CpuCostSpec) -> Mapping[str, float]:
    """By name of the quantity."""
    values = {
        CPU.name: exchange.cpu_ns / NS_PER_US / spec.messages,
        SWITCHES.name: exchange.switches / spec.messages,
    }
    if exchange.cycles is not None:
        values[CYCLES.name] = exchange.cycles / spec.messages
    return values


def details_of(exchange: Exchange, rung: Rung, spec: CpuCostSpec) -> Mapping[str, float]:
    """What is shown beside."""
    expected = 0 if rung is Rung.NO_PUBLISHING else spec.messages * spec.subscribers
    lost = 100.0 * (expected - exchange.received) / expected if expected else 0.0
    return {
        "system_percent": 100.0 * exchange.system_ns / exchange.cpu_ns if exchange.cpu_ns else 0.0,
        "load_percent": 100.0 * exchange.cpu_ns / exchange.wall_ns if exchange.wall_ns else 0.0,
        "voluntary_per_message": exchange.voluntary / spec.messages,
        "involuntary_per_message": exchange.involuntary / spec.messages,
        "lost_percent": lost,
    }


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; no bounds where there are too few rounds for them."""

    value: float
    low: float | None
    high: float | None


def estimate(values: Sequence[float]) -> Estimate | None:
    """The median; ``None`` without any values."""
    if not values:
        return None
    return Estimate(median(values), *_finite(median_interval(values)))


def ratio(values: Sequence[float], base: Sequence[float]) -> Estimate | None:
    """How many times as much as `base`; ``None`` where either has no values, or some are zero."""
    if not values or not base or min(*values, *base) <= 0:
        return None
    shift = estimate_shift(np.log(np.array(values)), np.log(np.array(base)), tail=_TAIL)
    low, high = _finite((float(np.exp(shift.low)), float(np.exp(shift.high))))
    return Estimate(float(np.exp(shift.estimate)), low or None, high)


def _finite(bounds: tuple[float, float]) -> tuple[float | None, float | None]:
    low, high = (bound if np.isfinite(bound) else None for bound in bounds)
    return low, high
