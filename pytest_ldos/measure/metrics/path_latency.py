"""Latency of the passages of a trial along a causal path, and misses of the path's deadline."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.base.units import ns_to_ms
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.model import Measurement, Window
from pytest_ldos.measure.metrics.sources import PASSAGES
from pytest_ldos.scenario.metrics import PathStatistic

_QUANTILES = {PathStatistic.P50: 0.5, PathStatistic.P99: 0.99}


def latency_of(path: PathSpec, statistic: PathStatistic) -> Callable[[TrialContext, Window], Measurement]:
    """Measures a statistic of the passages along a path that ended in the trial."""

    def measure(context: TrialContext, window: Window) -> Measurement:
        latencies_ns = _latencies_ns(context, path, window)
        if latencies_ns.is_empty():
            reason = f"no passage along path '{path.name}' ended in the trial"
            return Measurement(context.not_seen(reason))
        details = {"passages": float(len(latencies_ns)), **_misses(path, latencies_ns)}
        if statistic is PathStatistic.MISSES:
            return Measurement(details["misses"], details, PASSAGES)
        value_ns = latencies_ns.quantile(_QUANTILES[statistic], interpolation="linear")
        assert value_ns is not None
        return Measurement(ns_to_ms(value_ns), details, PASSAGES)

    return measure


def _latencies_ns(context: TrialContext, path: PathSpec, window: Window) -> pl.Series:
    passages = context.passages(path, window)
    if path.of_phases:
        passages = passages.filter(pl.col("goal_id") == context.trial.goal_id)
    return passages["latency_ns"]


def _misses(path: PathSpec, latencies_ns: pl.Series) -> dict[str, float]:
    """Number of passages that took longer than the path's deadline; empty without one."""
    return {} if path.deadline_ns is None else {"misses": float((latencies_ns > path.deadline_ns).sum())}
