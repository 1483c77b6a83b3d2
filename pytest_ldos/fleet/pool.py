"""Pools the goals of many traces, metric by metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_ldos.fleet.summary import TraceSummary


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """One metric over all goals of complete traces, from one source; values from other sources are not comparable.

    Attributes:
        count: number of goals with a value.
        traces: number of traces that these goals belong to.
        median, p95: in the metric's unit; p95 by linear interpolation.
    """

    metric: str
    source: str
    unit: str
    count: int
    traces: int
    median: float
    p95: float


def pool(summaries: Sequence[TraceSummary]) -> tuple[Pooled, ...]:
    """Pools the metrics of complete traces, ordered by metric, then by source."""
    found: dict[tuple[str, str, str], list[tuple[str, float]]] = {}
    for summary in filter(is_whole, summaries):
        for each in summary.values:
            if each.value is not None:
                found.setdefault((each.metric, each.source, each.unit), []).append((summary.trace, each.value))
    places = {name: place for place, name in enumerate(metric_names(summaries))}
    ordered = sorted(found.items(), key=lambda item: (places[item[0][0]], item[0]))
    return tuple(_pool(*key, values) for key, values in ordered)


def is_whole(summary: TraceSummary) -> bool:
    """True if no part of the trace is missing: in an incomplete trace, a pause may only be lost events."""
    return not (summary.problem or summary.damage or summary.lost_events or summary.lost_packets)


def metric_names(summaries: Sequence[TraceSummary]) -> tuple[str, ...]:
    """Names of the metrics of all traces, each once, in the order of their first appearance."""
    return tuple(dict.fromkeys(each.metric for summary in summaries for each in summary.values))


def median_of(summary: TraceSummary, metric: str) -> tuple[float, str] | None:
    """Median over a trace's goals, and its unit; ``None`` if no goal has the metric or its sources differ."""
    values = [each for each in summary.values if each.metric == metric and each.value is not None]
    if len({each.source for each in values}) != 1:
        return None
    return float(np.median([each.value for each in values])), values[0].unit


def _pool(metric: str, source: str, unit: str, values: Sequence[tuple[str, float]]) -> Pooled:
    median, p95 = np.quantile([value for _, value in values], [0.5, 0.95])
    return Pooled(
        metric=metric,
        source=source,
        unit=unit,
        count=len(values),
        traces=len({trace for trace, _ in values}),
        median=float(median),
        p95=float(p95),
    )
