"""Tables and figures of a topology."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from pytest_ldos.instruments.study import Axis, Cell, Column, Curve, Figure, Point, Round, Table
from pytest_ldos.instruments.topology.edges import EdgeFigures
from pytest_ldos.instruments.topology.rounds import MEAN, P99, Analysis, Usage

MOST_EVENTS: Final = 5000
"""Largest number of events in a table; the log has all."""

_MB: Final = 1024 / 1e6
"""Megabytes per KiB."""


def tables_of(analysis: Analysis) -> tuple[Table, ...]:
    return (
        _edges(analysis),
        _totals(analysis),
        _usage(analysis),
        _all(analysis),
        _resources(analysis),
        _events(analysis),
    )


def figures_of_study(analysis: Analysis) -> tuple[Figure, ...]:
    latency = [
        _curve_of_rounds(analysis.rounds, metric.name, label) for metric, label in ((MEAN, "mean"), (P99, "p99"))
    ]
    return (
        Figure(
            name="latency",
            title="Latency of all edges by round",
            x=Axis(title="round"),
            y=Axis(title="latency", unit="µs", is_log=True),
            curves=tuple(latency),
        ),
        _over_time(analysis.usage, "cpu", "CPU time since the moment before", "%", lambda each: each.cpu_now_percent),
        _over_time(analysis.usage, "rss", "Resident memory of all processes", "MB", lambda each: each.rss_kb * _MB),
    )


_COUNTS: Final = tuple(Column(name=name) for name in ("received", "late", "too_late", "lost"))
_LATENCIES: Final = tuple(Column(name=name, unit="µs") for name in ("mean", "sd", "min", "max", "p99"))
_LEFT_OUT: Final = "mean, sd, min and max without what was too late"


def _edges(analysis: Analysis) -> Table:
    columns = (Column(name="node"), Column(name="topic"), *_COUNTS, *_LATENCIES)
    rows = tuple((each.edge.node, each.edge.topic, *_numbers(each)) for each in analysis.edges)
    return Table(name="edges", title=f"What arrived ({_LEFT_OUT})", columns=columns, rows=rows)


def _all(analysis: Analysis) -> Table:
    columns = (
        Column(name="node"),
        Column(name="topic"),
        Column(name="kind"),
        Column(name="size", unit="B"),
        *_COUNTS,
        *_LATENCIES,
        Column(name="freq", unit="Hz", title="declared"),
        Column(name="rate", unit="Hz", title="received"),
        Column(name="duration", unit="s"),
    )
    title = f"Every edge in full ({_LEFT_OUT})"
    rows = tuple(map(_edge_row, analysis.edges))
    return Table(name="latency_all", title=title, columns=columns, rows=rows, is_detail=True)


def _edge_row(figures: EdgeFigures) -> tuple[Cell, ...]:
    edge = figures.edge
    return (
        edge.node,
        edge.topic,
        "round trip" if edge.is_service else "message",
        edge.sources[0].size_bytes,
        *_numbers(figures),
        figures.nominal_hz,
        figures.rate_hz,
        figures.duration_s,
    )


def _numbers(figures: EdgeFigures) -> tuple[Cell, ...]:
    return (
        figures.received,
        figures.late,
        figures.too_late,
        figures.lost,
        figures.mean_us,
        figures.sd_us,
        figures.min_us,
        figures.max_us,
        figures.p99_us,
    )


def _totals(analysis: Analysis) -> Table:
    totals = analysis.totals
    columns = (
        Column(name="edges"),
        Column(name="received"),
        Column(name="mean", unit="µs"),
        Column(name="late"),
        Column(name="late_share", unit="%", title="late"),
        Column(name="too_late"),
        Column(name="too_late_share", unit="%", title="too late"),
        Column(name="lost"),
        Column(name="lost_share", unit="%", title="lost"),
    )
    row = (
        f"all {len(analysis.edges)}",
        totals.received,
        totals.mean_us,
        totals.late,
        totals.late_percent,
        totals.too_late,
        totals.too_late_percent,
        totals.lost,
        totals.lost_percent,
    )
    return Table(name="latency_total", title="All edges together", columns=columns, rows=(row,))


def _usage(analysis: Analysis) -> Table:
    """Returns a row per start; `resources` has the individual samples."""
    columns = (
        Column(name="start"),
        Column(name="cpu", unit="%", title="CPU"),
        Column(name="most_cpu", unit="%", title="most CPU"),
        Column(name="first_rss", unit="MB", title="RSS at first"),
        Column(name="most_rss", unit="MB", title="most RSS"),
        Column(name="most_vsz", unit="MB", title="most VSZ"),
    )
    rows = tuple(
        (
            start + 1,
            own[-1].cpu_percent,
            max((each.cpu_now_percent for each in own if each.cpu_now_percent is not None), default=None),
            own[0].rss_kb * _MB,
            max(each.rss_kb for each in own) * _MB,
            max(each.vsz_kb for each in own) * _MB,
        )
        for start, own in _by_start(analysis.usage)
    )
    return Table(name="usage", title="CPU time, of all cores, and memory of all processes", columns=columns, rows=rows)


def _resources(analysis: Analysis) -> Table:
    sizes = ("arena", "in_use", "mmap", "rss", "vsz")
    columns = (
        Column(name="start"),
        Column(name="time", unit="ms"),
        Column(name="cpu", unit="%", title="cpu since the start"),
        Column(name="cpu_now", unit="%", title="cpu"),
        *(Column(name=name, unit="MB") for name in sizes),
    )
    rows = tuple(
        (
            each.start,
            each.time_ms,
            each.cpu_percent,
            each.cpu_now_percent,
            *(getattr(each, f"{name}_kb") * _MB for name in sizes),
        )
        for each in analysis.usage
    )
    title = "CPU time, of all cores, and memory of all processes, moment by moment"
    return Table(name="resources", title=title, columns=columns, rows=rows, is_detail=True)


def _events(analysis: Analysis) -> Table:
    columns = (Column(name="time", unit="ms"), Column(name="caller"), Column(name="code"), Column(name="description"))
    rows = tuple(
        (each.time_ms, each.caller, int(each.code), each.description) for each in analysis.events[:MOST_EVENTS]
    )
    return Table(name="events", title="Events", columns=columns, rows=rows, is_detail=True)


def _by_start(usage: Sequence[Usage]) -> Iterator[tuple[int, list[Usage]]]:
    return ((start, list(own)) for start, own in groupby(usage, key=lambda each: each.start))


def _curve_of_rounds(rounds: Sequence[Round], name: str, label: str) -> Curve:
    values = ((place, each.values.get(name)) for place, each in enumerate(rounds, start=1))
    return Curve(label, tuple(Point(place, value) for place, value in values if isinstance(value, float)))


def _over_time(
    usage: Sequence[Usage], name: str, title: str, unit: str, value_of: Callable[[Usage], float | None]
) -> Figure:
    """Returns a figure with a curve for each start."""
    curves = []
    for start, own in _by_start(usage):
        values = [(each.time_ms / 1e3, value_of(each)) for each in own]
        points = tuple(Point(time_s, value) for time_s, value in values if value is not None)
        curves.append(Curve(f"start {start + 1}", points))
    return Figure(
        name=name, title=title, x=Axis(title="time", unit="s"), y=Axis(title=name, unit=unit), curves=tuple(curves)
    )
