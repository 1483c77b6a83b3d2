"""Rate of publications on a topic, and the longest time without one.

Tracepoints: see `trace.execution.publications`; all publishers of a topic count together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pytest_ldos.base.nearest import suggest
from pytest_ldos.base.series import Missing
from pytest_ldos.base.units import NS_PER_S, ns_to_ms
from pytest_ldos.measure.metrics.context import TrialContext
from pytest_ldos.measure.metrics.model import Measurement, Window
from pytest_ldos.measure.metrics.sources import PUBLICATIONS
from pytest_ldos.trace.execution.model import TimesNs

Measure = Callable[[TrialContext, Window], Measurement]


def rate_of(topic: str) -> Measure:
    """Measures publications a second on a topic.

    Between two publications their number grows evenly: a window that ends right before one has most of it, so that the
    rate of a slow topic does not jump with where a trial begins.
    """

    def measure(context: TrialContext, window: Window) -> Measurement:
        times = context.model.publication_times_ns(topic)
        within = _within(times, window)
        if not len(within):
            return Measurement(_nothing(context, topic))
        published = np.interp(window, times, np.arange(len(times)))
        seconds = (window[1] - window[0]) / NS_PER_S
        details = {"publications": float(len(within))}
        return Measurement(float(np.ptp(published) / seconds), details, PUBLICATIONS)

    return measure


def largest_gap_of(topic: str) -> Measure:
    """Measures the longest time without a publication on a topic, also at the begin and the end of the window."""

    def measure(context: TrialContext, window: Window) -> Measurement:
        within = _within(context.model.publication_times_ns(topic), window)
        if not len(within):
            return Measurement(_nothing(context, topic))
        gaps = np.diff([window[0], *within, window[1]])
        details = {"publications": float(len(within))}
        return Measurement(ns_to_ms(int(gaps.max())), details, PUBLICATIONS)

    return measure


def _within(times: TimesNs, window: Window) -> TimesNs:
    return times[(times >= window[0]) & (times <= window[1])]


def _nothing(context: TrialContext, topic: str) -> Missing:
    topics = context.model.topics()
    if topic in topics:
        return context.not_seen(f"nothing was published on {topic} in the trial")
    unknown = f"the trace has no topic {topic}: {suggest(topic, topics)}" if topics else "the trace has no topics"
    return context.not_seen(unknown)
