"""The cost of a message: in one round, and over all rounds of a rung."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Final

from pytest_ldos.base.series import Better
from pytest_ldos.base.stats.mean_interval import mean_interval
from pytest_ldos.base.units import NS_PER_US
from pytest_ldos.instruments.cpu_cost.exchange import Exchange
from pytest_ldos.instruments.cpu_cost.ladder import RungRound
from pytest_ldos.instruments.cpu_cost.rungs import TITLES, Rung
from pytest_ldos.instruments.cpu_cost.spec import CpuCostSpec
from pytest_ldos.instruments.study import Round
from pytest_ldos.measure.metrics.model import Metric

CPU: Final = Metric(name="cpu_per_message", title="CPU time a message", unit="µs", better=Better.LOWER)
SWITCHES: Final = Metric(name="switches_per_message", title="Context switches a message", unit="", better=Better.LOWER)
CYCLES: Final = Metric(name="cycles_per_message", title="CPU cycles a message", unit="", better=Better.LOWER)
QUANTITIES: Final = (CPU, SWITCHES, CYCLES)


def to_round(measured: RungRound, spec: CpuCostSpec) -> Round:
    """Converts to a round for the gate. Where nothing is published, counts the other rungs' messages of that time."""
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
    """Returns why a round cannot give the cost of a message; empty if it can."""
    if rung is Rung.NO_PUBLISHING:
        return ""
    if exchange.published < spec.messages:
        return f"{exchange.published} of {spec.messages} messages were published in time"
    sent = spec.messages * spec.subscribers
    if exchange.received > sent:
        return f"{exchange.received} messages came where {sent} were due: some are late ones of the round before"
    return "" if exchange.received else "no message was received"


def values_of(exchange: Exchange, spec: CpuCostSpec) -> Mapping[str, float]:
    """Returns the values by name of the quantity."""
    values = {
        CPU.name: exchange.cpu_ns / NS_PER_US / spec.messages,
        SWITCHES.name: exchange.switches / spec.messages,
    }
    if exchange.cycles is not None:
        values[CYCLES.name] = exchange.cycles / spec.messages
    return values


def details_of(exchange: Exchange, rung: Rung, spec: CpuCostSpec) -> Mapping[str, float]:
    """Returns the details that are shown with the values."""
    expected = 0 if rung is Rung.NO_PUBLISHING else spec.messages * spec.subscribers
    lost = 100.0 * (expected - exchange.received) / expected if expected else 0.0
    return {
        "system_percent": 100.0 * exchange.system_ns / exchange.cpu_ns if exchange.cpu_ns else 0.0,
        "load_percent": 100.0 * exchange.cpu_ns / exchange.wall_ns if exchange.wall_ns else 0.0,
        "voluntary_per_message": exchange.voluntary / spec.messages,
        "involuntary_per_message": exchange.involuntary / spec.messages,
        "lost_percent": lost,
        **({} if exchange.migrations is None else {"migrations_per_message": exchange.migrations / spec.messages}),
    }


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval; the bounds are ``None`` if there are too few starts."""

    value: float
    low: float | None
    high: float | None


ByStart = Mapping[int, Sequence[float]]
"""Values of rounds by number of the start: rounds of one start are too much alike for an interval over them."""


def estimate(values: ByStart) -> Estimate | None:
    """Mean over the starts of the medians of their rounds, all values being at least 0; ``None`` without any values."""
    medians = [median(of_start) for of_start in values.values()]
    if not medians:
        return None
    low, high = _finite(mean_interval(medians))
    return Estimate(fmean(medians), None if low is None else max(0.0, low), high)


def ratio(values: ByStart, base: ByStart) -> Estimate | None:
    """Ratio to `base`, over the starts that both have; ``None`` without any such start, or with values of zero.

    The ratio is taken within each start, because what slows a start slows both; then the geometric mean over starts.
    """
    pairs = [(median(values[start]), median(base[start])) for start in values if start in base]
    if not pairs or min(min(pair) for pair in pairs) <= 0:
        return None
    logs = [math.log(value / of_base) for value, of_base in pairs]
    low, high = _finite(mean_interval(logs))
    return Estimate(math.exp(fmean(logs)), *(None if bound is None else math.exp(bound) for bound in (low, high)))


def _finite(bounds: tuple[float, float]) -> tuple[float | None, float | None]:
    low, high = (bound if math.isfinite(bound) else None for bound in bounds)
    return low, high
