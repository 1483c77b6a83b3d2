"""Plots of a sweep: its quantities over its axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from htpy import Node

from pytest_ldos.campaign.cells import Value, show_value
from pytest_ldos.show.report.plots.chart import COLOURS, SHAPES, Axis, Chart, Mark, Series, Shape, spans_decades
from pytest_ldos.show.report.plots.svg import draw as draw_chart
from pytest_ldos.show.report.plots.svg import draw_legend
from pytest_ldos.show.report.sweep.document import AxisReport, CellReport, LoadNumber, MetricTitle, SweepReport
from pytest_ldos.show.report.sweep.page import interval_of, median_of, succeeded

_APART: Final = 7.0
"""Offset between the points of two lines, so that intervals do not overlap [px]."""

_FARTHEST: Final = 22.0
_BELOW: Final = 10.0
"""Distance from the axis to cells without a number [px]."""


@dataclass(frozen=True)
class Point:
    """A cell's value of one metric; ``None`` for an absent number."""

    cell: CellReport
    value: float | None
    low: float | None
    high: float | None
    tip: str


@dataclass(frozen=True)
class Quantity:
    """The drawn quantity of a cell.

    Attributes:
        limits: ends of the scale, if not derived from the values.
    """

    name: str
    unit: str
    of: Callable[[CellReport], Point]
    limits: tuple[float, float] | None = None


def draw(report: SweepReport, quantity: Quantity) -> Iterator[Node]:
    """Makes a drawing for each combination of values of the third and later axes."""
    points = [quantity.of(cell) for cell in report.cells]
    up = _up(points, quantity)
    for facet in dict.fromkeys(cell.values[2:] for cell in report.cells):
        yield draw_chart(
            _chart(report, quantity, [each for each in points if each.cell.values[2:] == facet], up, facet)
        )


def series_of(report: SweepReport) -> list[tuple[Value, ...]]:
    """A line for each value of the second axis; with one axis, a single line without a name."""
    return list(dict.fromkeys(cell.values[1:2] for cell in report.cells))


def _up(points: Sequence[Point], quantity: Quantity) -> Axis:
    unit = quantity.unit or "value"
    if quantity.limits is not None:
        return Axis(low=quantity.limits[0], high=quantity.limits[1], title=unit)
    bounds = [(each.value, each.low, each.high) for each in points if each.value is not None]
    values = [number for each in bounds for number in each if number is not None]
    is_log = spans_decades(values)
    return Axis.around(values, title=f"{unit}{', log' if is_log else ''}", is_log=is_log)


def _chart(
    report: SweepReport, quantity: Quantity, points: Sequence[Point], up: Axis, facet: tuple[Value, ...]
) -> Chart:
    across = _across(report.axes[0])
    note = ", ".join(f"{axis.name}={show_value(value)}" for axis, value in zip(report.axes[2:], facet, strict=True))
    series = series_of(report)
    chart = Chart(
        title=f"{quantity.name} over {report.axes[0].name}{f', {note}' if note else ''}",
        detail="; ".join(each.tip for each in points),
        note=note,
        x=across,
        y=up,
        bottom=58,
        below=28,
    )
    drawn = [
        each
        for number, value in enumerate(series)
        for each in _line(
            chart, [each for each in points if each.cell.values[1:2] == value], report.axes[0], number, len(series)
        )
    ]
    return replace(chart, series=tuple(drawn))


def _across(axis: AxisReport) -> Axis:
    """Numbers to scale, names at equal distances."""
    labels = [show_value(value) for value in axis.values]
    places = [_place(axis, value) for value in axis.values]
    ticks = tuple(zip(places, labels, strict=True))
    if not axis.is_numeric:
        return Axis(low=-0.5, high=len(labels) - 0.5, title=axis.name, ticks=ticks)
    is_log = spans_decades(places)
    return Axis.around(places, title=f"{axis.name}{', log' if is_log else ''}", is_log=is_log, ticks=ticks)


def _place(axis: AxisReport, value: Value) -> float:
    return float(str(value)) if axis.is_numeric else float(axis.values.index(value))


def _line(chart: Chart, points: Sequence[Point], axis: AxisReport, number: int, of: int) -> Iterator[Series]:
    """Joined medians of valid cells; other cells are crossed out, and cells without a number are crosses."""
    shift = max(-_FARTHEST, min(_FARTHEST, _APART * (number - (of - 1) / 2)))
    colour, shape = f"s{number % COLOURS}", SHAPES[number % len(SHAPES)]

    def mark(point: Point) -> Mark:
        x = chart.x.at(chart.x.share(_place(axis, point.cell.values[0])) + shift / chart.inner_width)
        if point.value is None:
            return Mark(x, chart.y.at(-_BELOW / chart.inner_height), point.tip)
        return Mark(x, point.value, point.tip, point.low, point.high)

    ordered = sorted(points, key=lambda each: _place(axis, each.cell.values[0]))
    for is_valid, run in groupby(ordered, key=lambda each: each.value is not None and each.cell.is_valid):
        if is_valid:
            yield Series(kind="dot", marks=tuple(map(mark, run)), colour=colour, shape=shape, line="-")
    crossed = [each for each in ordered if each.value is None or not each.cell.is_valid]
    hollow = tuple(mark(each) for each in crossed if each.value is not None)
    crosses = tuple(replace(mark(each), low=None, high=None) for each in crossed)
    yield Series(kind="dot hollow", marks=hollow, colour=colour, shape=shape, is_hollow=True)
    yield Series(kind="unfit", marks=crosses, colour="bad", shape=Shape.CROSS, size=10)


def draw_lines(report: SweepReport) -> Node:
    """Legend with each line's value of the second axis; nothing for a single line."""
    if len(report.axes) < 2:
        return None
    return draw_legend("Lines", [f"{report.axes[1].name}={show_value(value)}" for (value,) in series_of(report)])


def draw_success(report: SweepReport) -> Node:
    """Success rates."""

    def point(cell: CellReport) -> Point:
        share = 100 * cell.successes / cell.trials if cell.trials else None
        low, high = (100 * cell.success_low, 100 * cell.success_high) if cell.trials else (None, None)
        return Point(cell, share, low, high, f"{cell.label}: {succeeded(cell)} succeeded{_state(cell)}")

    return list(draw(report, Quantity("success rate", "%", point, limits=(-4, 104))))


def draw_load(report: SweepReport, number: LoadNumber) -> Node:
    """A number of the loads' proofs."""

    def point(cell: CellReport) -> Point:
        value = cell.load_numbers.get(number.key)
        value_text = "no value" if value is None else f"{value:.4g} {number.unit}"
        return Point(cell, value, value, value, f"{cell.label}: {value_text}{_state(cell)}")

    limits = (-4, 104) if number.unit == "%" else None
    return list(draw(report, Quantity(number.title, number.unit, point, limits=limits)))


def draw_metric(report: SweepReport, metric: MetricTitle) -> Node:
    """Medians of a metric with their intervals."""

    def point(cell: CellReport) -> Point:
        found = cell.metrics.get(metric.name)
        if found is None or found.median is None:
            state = "failed" if found is not None and found.values else "no value"
            return Point(cell, None, None, None, f"{cell.label}: {state}{_state(cell)}")
        interval = f" ({interval_of(found)})" if interval_of(found) else ""
        tip = f"{cell.label}: {median_of(found, metric)}{interval}{_state(cell)}"
        return Point(cell, found.median, found.low, found.high, tip)

    return list(draw(report, Quantity(metric.name, metric.unit, point)))


def _state(cell: CellReport) -> str:
    return "" if cell.is_valid else f", {cell.state}"
