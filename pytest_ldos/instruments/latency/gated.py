"""The part of a study that is gated: rounds of our programs, and their quantities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pytest_ldos.base.series import Better, Missing, Value
from pytest_ldos.instruments.latency.case import Program
from pytest_ldos.instruments.latency.exchange import Exchange
from pytest_ldos.instruments.latency.spec import LatencySpec
from pytest_ldos.instruments.study import Round
from pytest_ldos.measure.metrics.model import Metric

P50: Final = Metric(name="round_trip_p50", title="Round trip, median", unit="µs", better=Better.LOWER)
P90: Final = Metric(name="round_trip_p90", title="Round trip, 90th percentile", unit="µs", better=Better.LOWER)
P99: Final = Metric(name="round_trip_p99", title="Round trip, 99th percentile", unit="µs", better=Better.LOWER)
P999: Final = Metric(name="round_trip_p999", title="Round trip, 99.9th percentile", unit="µs", better=Better.LOWER)
ONE_WAY: Final = Metric(name="one_way_p50", title="One way there, median", unit="µs", better=Better.LOWER)
RATE: Final = Metric(name="round_trips", title="Round trips a second", unit="Hz", better=Better.HIGHER)
QUANTITIES: Final = (P50, P90, P99, P999, ONE_WAY, RATE)


def rounds_of(exchanges: Sequence[Exchange], spec: LatencySpec) -> tuple[Round, ...]:
    """Returns the rounds of our programs; ddsperf's are for comparison only."""
    ours = [each for each in exchanges if each.case.program is not Program.DDSPERF]
    return tuple(_round(each, spec) for each in sorted(ours, key=lambda each: each.block))


def _round(found: Exchange, spec: LatencySpec) -> Round:
    return Round(
        case=found.case.name(spec),
        block=found.block,
        values=_values(found),
        details={"sent": float(found.sent), "lost": float(found.lost), "late": float(found.late)},
        failure=found.failure,
    )


def _values(found: Exchange) -> dict[str, Value]:
    times = found.round_trip
    if times is None:
        return {}
    return {
        P50.name: times.p50,
        P90.name: times.p90,
        P99.name: times.p99,
        P999.name: Missing("not reported") if times.p999 is None else times.p999,
        ONE_WAY.name: Missing("not reported") if found.there is None else found.there.p50,
        RATE.name: found.per_second,
    }


def remarks_of(exchanges: Sequence[Exchange]) -> list[str]:
    """Returns notes on lost messages, and on failures of ddsperf, which are no rounds of ours."""
    lost, sent = sum(each.lost for each in exchanges), sum(each.sent for each in exchanges)
    losses = [f"{lost} of {sent} messages had no answer in time"] if lost else []
    theirs = [each for each in exchanges if each.case.program is Program.DDSPERF and each.failure]
    return [*losses, *dict.fromkeys(f"ddsperf, {each.case.words}: {each.failure}" for each in theirs)]
