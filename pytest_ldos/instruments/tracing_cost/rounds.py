"""The gated quantities: latencies of each case and mode, and the cost of a tracepoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from pytest_ldos.base.series import Better
from pytest_ldos.base.units import NS_PER_US
from pytest_ldos.instruments.study import Round
from pytest_ldos.instruments.tracing_cost.modes import TITLES
from pytest_ldos.instruments.tracing_cost.pairs import Latencies, Start
from pytest_ldos.instruments.tracing_cost.recordings import exchanges_under
from pytest_ldos.instruments.tracing_cost.spec import Case
from pytest_ldos.measure.metrics.model import Metric

LATENCY_MEDIAN: Final = Metric(
    name="latency_median", title="Publish → callback, median", unit="µs", better=Better.LOWER
)
LATENCY_MEAN: Final = Metric(name="latency_mean", title="Publish → callback, mean", unit="µs", better=Better.LOWER)
TRACEPOINT: Final = Metric(name="tracepoint", title="A call of a tracepoint", unit="ns", better=Better.LOWER)
QUANTITIES: Final = (LATENCY_MEDIAN, LATENCY_MEAN, TRACEPOINT)


def rounds_of(start: Start, cases: Sequence[Case]) -> Iterator[Round]:
    """Yields a round for each case, and one for the tracepoint; failed rounds have the reason."""
    name = f"{start.layer.label} {TITLES[start.mode]}"
    if exchanges_under(start.mode, start.layer):
        for case in cases:
            yield _case_round(f"{name}: {case.label}", start, start.cases.get(case))
    failure = start.failure or ("" if start.tracepoint_ns else "no tracepoint was timed")
    values = {} if failure else {TRACEPOINT.name: float(np.median(start.tracepoint_ns))}
    yield Round(case=f"{name}: a tracepoint", block=start.block, values=values, failure=failure)


def _case_round(case: str, start: Start, found: Latencies | None) -> Round:
    if start.failure or found is None or not found.latencies_ns:
        return Round(case=case, block=start.block, failure=start.failure or "no message came")
    return Round(case=case, block=start.block, values=_values(found), details=_details(found))


def _values(found: Latencies) -> Mapping[str, float]:
    latencies_us = np.array(found.latencies_ns) / NS_PER_US
    return {LATENCY_MEDIAN.name: float(np.median(latencies_us)), LATENCY_MEAN.name: float(np.mean(latencies_us))}


def _details(found: Latencies) -> Mapping[str, float]:
    latencies_us = np.array(found.latencies_ns) / NS_PER_US
    return {
        "min_us": float(latencies_us.min()),
        "p99_us": float(np.percentile(latencies_us, 99)),
        "max_us": float(latencies_us.max()),
        "std_us": float(latencies_us.std()),
        "lost_percent": 100.0 * (found.published - len(found.latencies_ns)) / found.published,
    }
