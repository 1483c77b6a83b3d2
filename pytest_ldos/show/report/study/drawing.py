"""Figures of a study: curves with intervals, or bars side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from htpy import Node

from pytest_ldos.instruments import study
from pytest_ldos.instruments.study import Curve, Figure, Point
from pytest_ldos.show.report.plots.chart import COLOURS, SHAPES, Axis, Chart, Mark, Series, Shape
from pytest_ldos.show.report.plots.svg import draw as draw_chart
from pytest_ldos.show.report.plots.svg import draw_legend
from pytest_ldos.show.report.study.words import shown

_BAR_ROOM: Final = 0.06
_BAR_SHARE: Final = 0.8
"""Share of the distance between two positions that bars fill."""


def draw(figure: Figure) -> Node:
    """Draws all curves of a figure, with a sentence as alternative text."""
    names = ", ".join(curve.label for curve in figure.curves)
    title = f"{figure.y.title} over {figure.x.title}: {names}"
    series = tuple(_series(figure, number, curve) for number, curve in enumerate(figure.curves))
    return draw_chart(Chart(title=title, x=_across(figure), y=_up(figure), series=series, height=262, bottom=48))


def legend(figure: Figure) -> Node:
    """The label of each curve; nothing for a single one."""
    return draw_legend("Curves", [curve.label for curve in figure.curves])


def _up(figure: Figure) -> Axis:
    points = [point for curve in figure.curves for point in curve.points]
    values = [value for each in points for value in (each.y, each.low, each.high) if value is not None]
    if figure.shape is not study.Shape.BAR or figure.y.is_log:
        return Axis.around(values, title=figure.y.unit, is_log=figure.y.is_log)
    return _from_zero(values, figure.y.unit)


def _from_zero(values: Sequence[float], title: str) -> Axis:
    """Makes the axis begin at zero for bars, unless a value is negative."""
    low, high = min([0.0, *values]), max([0.0, *values])
    room = _BAR_ROOM * (high - low) or 1.0
    return Axis(low=low - room if low else 0.0, high=high + room, title=title)


def _across(figure: Figure) -> Axis:
    axis = figure.x
    title = f"{axis.title}{f' [{axis.unit}]' if axis.unit else ''}{', log' if axis.is_log else ''}"
    if axis.names:
        return Axis(low=-0.5, high=len(axis.names) - 0.5, title=title, ticks=tuple(enumerate(axis.names)))
    values = [point.x for curve in figure.curves for point in curve.points]
    return Axis.around(values, title=title, is_log=axis.is_log)


def _series(figure: Figure, number: int, curve: Curve) -> Series:
    colour = f"s{number % COLOURS}"
    if figure.shape is study.Shape.BAR:
        width = _BAR_SHARE * _room(figure) / len(figure.curves)
        marks = tuple(_marks(figure, curve, shift=(number - len(figure.curves) / 2) * width))
        return Series(kind="bar", marks=marks, colour=colour, shape=Shape.BAR, size=width)
    marks = tuple(_marks(figure, curve))
    return Series(kind="dot", marks=marks, colour=colour, shape=SHAPES[number % len(SHAPES)], line="-")


def _marks(figure: Figure, curve: Curve, shift: float = 0.0) -> Iterator[Mark]:
    for point in curve.points:
        has_interval = point.low is not None and point.high is not None
        low, high = (point.low, point.high) if has_interval else (None, None)
        yield Mark(point.x + shift, point.y, _tip(figure, curve, point), low, high)


def _room(figure: Figure) -> float:
    """Distance between neighbouring positions; at most a quarter of the axis."""
    axis = _across(figure)
    places = sorted({point.x for curve in figure.curves for point in curve.points})
    return min([(axis.high - axis.low) / 4, *(after - before for before, after in pairwise(places))])


def _tip(figure: Figure, curve: Curve, point: Point) -> str:
    where = figure.x.names[round(point.x)] if figure.x.names else f"{point.x:g} {figure.x.unit}".strip()
    interval = "" if point.low is None or point.high is None else f" ({shown(point.low)} to {shown(point.high)})"
    return f"{curve.label}, {where}: {shown(point.y)} {figure.y.unit}".strip() + interval
