"""Metrics of the message flow that one message of the front lidar begins, as the published drawing counts it."""

from __future__ import annotations

from functools import partial
from statistics import fmean

from pytest_ldos import api

BEGIN, END = "/FrontLidarDriver", "/VehicleInterface"
LONGEST_NS = 1_500_000_000  # of a flow: it must have ended within the trial


def pytest_ldos_metrics():
    metric = partial(api.OwnMetric, better=api.Better.LOWER)
    return [
        metric(name="first_ms", title="lidar to the first vehicle command", unit="ms", measure=partial(mean, first)),
        metric(name="last_ms", title="lidar to the last vehicle command", unit="ms", measure=partial(mean, last)),
        metric(name="commands", title="vehicle commands of a lidar message", unit="", measure=partial(mean, len)),
    ]


def first(flow):
    return flow[0] / 1e6


def last(flow):
    return flow[-1] / 1e6


def mean(value, context, window):
    """Mean over all lidar messages of the trial that have reached the vehicle."""
    found = [flow for flow in flows(context, window) if flow]
    return fmean(map(value, found)) if found else api.Missing(f"nothing on {END} came from {BEGIN} in the trial")


def flows(context, window):
    """For each message of the lidar, the latencies of the vehicle commands that came from it, in nanoseconds."""
    model, lineages = context.model, api.LineageIndex(context.flow)
    topics = dict(model.publishers.select("id", "topic").iter_rows())
    sent = model.publications.select("publisher", "time_ns").iter_rows()
    until_ns = window[1] - LONGEST_NS
    for row, (publisher, time_ns) in enumerate(sent):
        if topics[publisher] == BEGIN and window[0] <= time_ns < until_ns:
            effects = lineages.forward(api.Kind.PUBLICATION, row).instances
            yield [
                each.begin_ns - time_ns for each in effects if each.kind is api.Kind.PUBLICATION and each.label == END
            ]
