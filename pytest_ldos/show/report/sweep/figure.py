"""Plots of a sweep: a metric over the first axis, lines for the values of the second, plots for those of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import one_line
from pytest_ldos.campaign.cells import Value, show_value
from pytest_ldos.show.report.html.drawing import COLOURS, frame, line, outline, place, vertical_axis, words
from pytest_ldos.show.report.html.scale import LogScale, Scale, scale_of
from pytest_ldos.show.report.sweep.document import AxisReport, CellReport, SweepReport
from pytest_ldos.show.report.sweep.scales import AxisScale

_WIDTH: Final = 520.0
_HEIGHT: Final = 250.0
_LEFT: Final = 64.0
_RIGHT: Final = 16.0
_TOP: Final = 26.0
_BOTTOM: Final = 206.0
_UNMEASURED: Final = _BOTTOM + 10
"""Where cells stand that have no number."""

_APART: Final = 7.0
_LABEL_WIDTH: Final = 44.0
_CROSS: Final = 6.0


@dataclass(frozen=True)
class Point:
    """A cell as one metric shows it; numbers are ``None`` where there are none."""

    cell: CellReport
    value: float | None
    low: float | None
    high: float | None
    tip: str


@dataclass(frozen=True)
class Quantity:
    """What is drawn.

    Attributes:
        limits: the scale's, where they do not follow from the values.
    """

    name: str
    unit: str
    of: Callable[[CellReport], Point]
    limits: tuple[float, float] | None = None


def draw(report: SweepReport, quantity: Quantity) -> Iterator[Node]:
    """A drawing for each combination of the values of the third and later axes."""
    points = [quantity.of(cell) for cell in report.cells]
    scale = _value_scale(points, quantity)
    for facet in dict.fromkeys(cell.values[2:] for cell in report.cells):
        yield _plot(report, quantity, [each for each in points if each.cell.values[2:] == facet], scale, facet)


def _value_scale(points: Sequence[Point], quantity: Quantity) -> Scale:
    if quantity.limits is not None:
        return Scale(*quantity.limits, _BOTTOM, _TOP)
    bounds = [(each.value, each.low, each.high) for each in points if each.value is not None]
    return scale_of([number for each in bounds for number in each if number is not None], start=_BOTTOM, end=_TOP)


def _plot(
    report: SweepReport, quantity: Quantity, points: Sequence[Point], scale: Scale, facet: tuple[Value, ...]
) -> Node:
    across = AxisScale.of(report.axes[0], start=_LEFT + 16, end=_WIDTH - _RIGHT - 16)
    title = ", ".join(f"{axis.name}={show_value(value)}" for axis, value in zip(report.axes[2:], facet, strict=True))
    unit = f"{quantity.unit or 'value'}{', log' if isinstance(scale, LogScale) else ''}"
    label = f"{quantity.name} over {report.axes[0].name}{f', {title}' if title else ''}: {_describe(points)}"
    series = series_of(report)
    content = [
        list(vertical_axis(scale, _LEFT, right=_WIDTH - _RIGHT, unit=unit)),
        list(_horizontal_axis(report.axes[0], across)),
        words(_WIDTH - _RIGHT, _TOP - 12, title, "tick", anchor="end") if title else None,
        [
            _series([each for each in points if each.cell.values[1:2] == value], number, len(series), across, scale)
            for number, value in enumerate(series)
        ],
    ]
    return frame(_WIDTH, _HEIGHT, label=label, content=content)


def _describe(points: Sequence[Point]) -> str:
    return "; ".join(each.tip for each in points)


def series_of(report: SweepReport) -> list[tuple[Value, ...]]:
    """The values of the second axis, each a line; of one axis a single line of no name."""
    return list(dict.fromkeys(cell.values[1:2] for cell in report.cells))


def _horizontal_axis(axis: AxisReport, across: AxisScale) -> Iterator[Node]:
    yield line(_LEFT, _BOTTOM, _WIDTH - _RIGHT, _BOTTOM, "zero")
    for x, label in across.labels(_LABEL_WIDTH):
        yield line(x, _BOTTOM, x, _BOTTOM + 4, "zero")
        yield words(x, _BOTTOM + 28, label, "tick", anchor="middle")
    name = f"{axis.name}{', log' if across.is_log else ''}"
    yield h.text({"text-anchor": "end"}, x=place(_WIDTH - _RIGHT), y=place(_HEIGHT - 2), class_="tick")[one_line(name)]


def _series(points: Sequence[Point], number: int, of: int, across: AxisScale, scale: Scale) -> Node:
    """One line: its points a little beside those of other lines, so that intervals do not hide each other."""
    shift = _APART * (number - (of - 1) / 2) if of > 1 else 0.0
    shift = max(-_LABEL_WIDTH / 2, min(_LABEL_WIDTH / 2, shift))
    placed = sorted(((across(each.cell.values[0]) + shift, each) for each in points), key=lambda pair: pair[0])
    return h.g(class_=f"series s{number % COLOURS}")[
        list(_ways(placed, scale)),
        [_interval(x, each, scale) for x, each in placed],
        [_mark(x, each, scale, number) for x, each in placed],
    ]


def _ways(placed: Sequence[tuple[float, Point]], scale: Scale) -> Iterator[Node]:
    """From valid cell to valid cell; none leads over one that is not."""
    for is_valid, run in groupby(placed, key=lambda pair: pair[1].value is not None and pair[1].cell.is_valid):
        way = [f"{place(x)},{place(scale(each.value or 0.0))}" for x, each in run] if is_valid else []
        if len(way) > 1:
            yield h.polyline(points=" ".join(way), class_="way")


def _interval(x: float, point: Point, scale: Scale) -> Node:
    """From one bound to the other; to the edge where there is none."""
    if point.value is None or (point.low is None and point.high is None):
        return None
    low = scale.start if point.low is None else scale(point.low)
    high = scale.end if point.high is None else scale(point.high)
    return line(x, low, x, high, "whisker")


def _mark(x: float, point: Point, scale: Scale, number: int) -> Node:
    """A point; with a cross where it is not valid, a cross alone where there is no number."""
    tip = h.title[one_line(point.tip)]
    if point.value is None:
        return h.path(d=_cross(x, _UNMEASURED), class_="unfit")[tip]
    y = scale(point.value)
    shape = h.path(d=outline(x, y, number), class_="dot" if point.cell.is_valid else "dot hollow")[tip]
    return shape if point.cell.is_valid else [shape, h.path(d=_cross(x, y), class_="unfit")[tip]]


def _cross(x: float, y: float) -> str:
    size = _CROSS
    down = f"M{place(x - size)} {place(y - size)}l{place(2 * size)} {place(2 * size)}"
    return f"{down}M{place(x + size)} {place(y - size)}l{place(-2 * size)} {place(2 * size)}"


def legend(report: SweepReport) -> Node:
    """Which line is which value of the second axis; nothing where there is one line."""
    if len(report.axes) < 2:
        return None
    axis = report.axes[1]
    entries = [
        h.li[
            h.svg({"viewBox": "0 0 30 14"}, width="30", height="14", aria_hidden="true")[
                h.g(class_=f"series s{number % COLOURS}")[
                    line(0, 7, 30, 7, "way"), h.path(d=outline(15, 7, number), class_="dot")
                ]
            ],
            h.bdi[one_line(f" {axis.name}={show_value(value)}")],
        ]
        for number, (value,) in enumerate(series_of(report))
    ]
    return h.ul(".legend", aria_label="Lines")[entries]
