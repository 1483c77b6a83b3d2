"""Metrics of the project's own tracepoints, from their events in the trace (`trace.execution.observed`), and topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import polars as pl

from pytest_ldos.base.errors import ConfigurationError
from pytest_ldos.base.ros2 import RECORDED
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.text import ns_to_ms
from pytest_ldos.measure.metrics.model import (
    MESSAGES,
    OWN_TRACEPOINTS,
    PART,
    WITHOUT_BEGIN,
    WITHOUT_END,
    Measurement,
    Source,
    TrialContext,
    Window,
)
from pytest_ldos.scenario.metrics import MetricKind, MetricSpec, Statistic
from pytest_ldos.trace.ctf.stats import describe_losses
from pytest_ldos.trace.execution.observed import TEXT_EVENT, OwnEvents

QUANTILES: Final = {Statistic.P50: 0.5, Statistic.P90: 0.9, Statistic.P99: 0.99, Statistic.MAX: 1.0}


def own_events(specs: Iterable[MetricSpec]) -> frozenset[str]:
    """Names of the events that these metrics need in addition to those of the model; empty if they need none."""
    names = {event.name for spec in specs for event in spec.events}
    return frozenset({*names, TEXT_EVENT}) if names else frozenset()


def recorded_for(specs: Iterable[MetricSpec]) -> tuple[str, ...]:
    """Patterns of the events to record for these metrics: all of their providers, so that errors can name them."""
    patterns = {f"{name.partition(':')[0]}:*" for name in own_events(specs)}
    return tuple(sorted(patterns - {*RECORDED}))


def refuse_unknown_events(specs: Iterable[MetricSpec], own: OwnEvents) -> None:
    """Raises `ConfigurationError` for an event or a field that a provider in the trace does not declare.

    A program that writes events as text declares none.
    """
    providers = {name.partition(":")[0] for name in own.declared}
    for spec in specs:
        for event in spec.events:
            if event.name.partition(":")[0] in providers and (why := own.why_unknown(event)):
                raise ConfigurationError(f"metric '{spec}': {why}", remedy="correct it in [tool.ldos] metrics")


def measure_events(spec: MetricSpec, context: TrialContext, window: Window) -> Measurement:
    own = context.trace_flow.own
    if own is None:
        return Measurement(Missing("the events of own tracepoints were not read from the trace"))
    if unknown := next(filter(None, map(own.why_unknown, spec.events)), ""):
        return Measurement(Missing(unknown))
    is_of_pairs = spec.kind in (MetricKind.SPAN, MetricKind.INTERVAL)
    return _spans(spec, context, own, window) if is_of_pairs else _numbers(spec, own, window)


def _spans(spec: MetricSpec, context: TrialContext, own: OwnEvents, window: Window) -> Measurement:
    found = own.spans(*spec.events)
    pairs = found.pairs.filter(pl.col("end_ns").is_between(*window))
    if spec.kind is MetricKind.INTERVAL:  # the first event may be long after those of an earlier trial
        pairs = pairs.filter(pl.col("begin_ns") >= window[0])
    alone = ((WITHOUT_END, found.without_end_ns), (WITHOUT_BEGIN, found.without_begin_ns))
    unmatched = {name: float(count) for name, times in alone if (count := times.is_between(*window).sum())}
    if pairs.is_empty():
        reason = f"no {spec.kind} of {spec.subject} ended in the trial"
        counts = ", ".join(f"{count:.0f} {name.replace('_', ' ')}" for name, count in unmatched.items())
        return Measurement(Missing(f"{reason}: {counts}" if counts else reason))
    if losses := describe_losses(context.model.stats.gaps_within(int(pairs["begin_ns"].to_numpy().min()), window[1])):
        return Measurement(Invalid(f"{losses} while it was measured"))
    is_on_thread = spec.kind is MetricKind.SPAN and all(event.fields == ("vtid",) for event in spec.events)
    states_ns = own.states_ns(pairs) if is_on_thread else {}
    parts = {f"{PART}{name}_ms": ns_to_ms(part) for name, part in states_ns.items()}
    details = {f"{spec.kind}s": float(len(pairs)), **unmatched, **parts}
    assert spec.statistic is not None
    duration_ns = np.quantile(pairs["end_ns"] - pairs["begin_ns"], QUANTILES[spec.statistic])
    return Measurement(ns_to_ms(duration_ns), details, OWN_TRACEPOINTS)


def _numbers(spec: MetricSpec, own: OwnEvents, window: Window) -> Measurement:
    ((name, fields),) = spec.events
    table = own.table(*spec.events).filter(pl.col("time_ns").is_between(*window))
    if spec.statistic is None:
        return Measurement(float(len(table)), {}, OWN_TRACEPOINTS)
    if table.is_empty():
        return Measurement(Missing(f"no {name} in the trial"))
    return _statistic_of(table["0"], f"'{fields[0]}' of {name}", spec, OWN_TRACEPOINTS)


def measure_topic(spec: MetricSpec, context: TrialContext, _: Window) -> Measurement:
    topic, name = spec.subject.rsplit(":", 1)
    found = context.outside.topics.get(spec.subject, "messages are read while a trial is made; no trace has them")
    if isinstance(found, str):
        return Measurement(Missing(found))
    if not found:
        return Measurement(Missing(f"no message of {topic} arrived in the trial"))
    return _statistic_of(pl.Series(found), f"'{name}' of {topic}", spec, MESSAGES)


def _statistic_of(values: pl.Series, field: str, spec: MetricSpec, source: Source) -> Measurement:
    assert spec.statistic is not None
    numbers = values.cast(pl.Float64, strict=False)
    finite = numbers.filter(numbers.is_finite()).to_numpy()
    if not len(finite):
        return Measurement(Missing(f"{field} is no number, but {values[0]!r}"))
    if finite.min() < 0:
        return Measurement(Invalid(f"{field} is {finite.min():g}, and only 0 or more can be compared"))
    details = {"values": float(len(finite)), "without_value": float(len(values) - len(finite))}
    found = float(np.quantile(finite, QUANTILES[spec.statistic]))
    return Measurement(found, {key: count for key, count in details.items() if count}, source)
