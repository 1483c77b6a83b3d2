"""Plots of a sweep: a metric over the first axis, lines for the values of the second, plots for those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from htpy import Node

from pytest_ldos.campaign.cells import Value, show_value
from pytest_ldos.show.report.plots.chart import COLOURS, SHAPES, Axis, Chart, Mark, Series, Shape, spans_decades
from pytest_ldos.show.report.plots.svg import draw as draw_chart
from pytest_ldos.show.report.sweep.document import AxisReport, CellReport, SweepReport

_APART: Final = 7.0
"""Pixels between the points of two lines, so that intervals do not hide each other."""

_FARTHEST: Final = 22.0
_BELOW: Final = 10.0
"""Pixels from the axis to cells that have no number."""


@dataclass(frozen=True)
class Point:
    """A cell as one metric shows it; ``None`` stands for an absent number."""

    cell: CellReport
    value: float | None
    low: float | None
    high: float | None
    tip: str


@dataclass(frozen=True)
class Quantity:
    """The drawn quantity of a cell.

    Attributes:
        limits: ends of the scale if they do not follow from the values.
    """

    name: str
    unit: str
    of: Callable[[CellReport], Point]
    limits: tuple[float, float] | None = None


def draw(report: SweepReport, quantity: Quantity) -> Iterator[Node]:
    """A drawing for each combination of the values of the third and later axes."""
    points = [quantity.of(cell) for cell in report.cells]
    up = _up(points, quantity)
    for facet in dict.fromkeys(cell.values[2:] for cell in report.cells):
        yield draw_chart(
            _chart(report, quantity, [each for each in points if each.cell.values[2:] == facet], up, facet)
        )


def series_of(report: SweepReport) -> list[tuple[Value, ...]]:
    """The values of the second axis, each a line; with one axis, a single line without a name."""
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
    """Joined medians of valid cells; others are crossed out, and crosses alone where they have no number."""
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
