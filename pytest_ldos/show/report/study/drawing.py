"""Figures of a study: curves with intervals, or bars side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import one_line
from pytest_ldos.instruments.study import Axis, Curve, Figure, Point, Shape
from pytest_ldos.show.report.html.drawing import COLOURS, box, frame, line, outline, place, vertical_axis, words
from pytest_ldos.show.report.html.scale import LogScale, Scale
from pytest_ldos.show.report.study.words import shown

_WIDTH: Final = 520.0
_HEIGHT: Final = 262.0
_LEFT: Final = 64.0
_RIGHT: Final = 16.0
_TOP: Final = 26.0
_BOTTOM: Final = 214.0
_LETTER: Final = 7.0
_LINE: Final = 14.0
_BAR_ROOM: Final = 0.06
_BAR_SHARE: Final = 0.8
"""Of the room between two places that bars fill."""


def draw(figure: Figure) -> Node:
    """All curves of a figure; a sentence for those who do not see it."""
    up, across = _value_scale(figure), _place_scale(figure)
    content = [
        list(vertical_axis(up, _LEFT, right=_WIDTH - _RIGHT, unit=figure.y.unit)),
        list(_horizontal_axis(figure.x, across)),
        [_curve(figure, number, curve, across, up) for number, curve in enumerate(figure.curves)],
    ]
    names = ", ".join(curve.label for curve in figure.curves)
    return frame(_WIDTH, _HEIGHT, label=f"{figure.y.title} over {figure.x.title}: {names}", content=content)


def legend(figure: Figure) -> Node:
    """Which curve is which; nothing where there is one."""
    if len(figure.curves) < 2:
        return None
    entries = [
        h.li[
            h.svg({"viewBox": "0 0 30 14"}, width="30", height="14", aria_hidden="true")[
                h.g(class_=_series(number))[line(0, 7, 30, 7, "way"), h.path(d=outline(15, 7, number), class_="dot")]
            ],
            h.bdi[one_line(f" {curve.label}")],
        ]
        for number, curve in enumerate(figure.curves)
    ]
    return h.ul(".legend", aria_label="Curves")[entries]


def _value_scale(figure: Figure) -> Scale:
    points = [point for curve in figure.curves for point in curve.points]
    values = [value for each in points for value in (each.y, each.low, each.high) if value is not None]
    if figure.y.is_log and values:
        return LogScale.around(values, start=_BOTTOM, end=_TOP)
    if figure.shape is Shape.BAR:
        return _from_zero(values)
    return Scale.around(values, start=_BOTTOM, end=_TOP)


def _from_zero(values: Sequence[float]) -> Scale:
    """Bars stand on the axis unless one hangs below it."""
    low, high = min([0.0, *values]), max([0.0, *values])
    room = _BAR_ROOM * (high - low) or 1.0
    return Scale(low - room if low else 0.0, high + room, _BOTTOM, _TOP)


def _place_scale(figure: Figure) -> Scale:
    if figure.x.names:
        return Scale(-0.5, len(figure.x.names) - 0.5, _LEFT, _WIDTH - _RIGHT)
    values = [point.x for curve in figure.curves for point in curve.points]
    kind = LogScale if figure.x.is_log and values else Scale
    return kind.around(values, start=_LEFT, end=_WIDTH - _RIGHT)


def _horizontal_axis(axis: Axis, across: Scale) -> Iterator[Node]:
    yield line(_LEFT, _BOTTOM, _WIDTH - _RIGHT, _BOTTOM, "zero")
    numbers = [] if axis.names else [(value, f"{value:.6g}") for value in across.ticks()]
    is_crowded = any(_LETTER * len(name) > across(1) - across(0) for name in axis.names)
    for value, label in [*enumerate(axis.names), *numbers]:
        lower = _LINE if is_crowded and value % 2 else 0.0
        yield line(across(value), _BOTTOM, across(value), _BOTTOM + 4, "zero")
        yield words(across(value), _BOTTOM + 18 + lower, label, "tick", anchor="middle")
    unit = f" [{axis.unit}]" if axis.unit else ""
    log = ", log" if axis.is_log else ""
    yield h.text({"text-anchor": "end"}, x=place(_WIDTH - _RIGHT), y=place(_HEIGHT - 6), class_="tick")[
        one_line(f"{axis.title}{unit}{log}")
    ]


def _curve(figure: Figure, number: int, curve: Curve, across: Scale, up: Scale) -> Node:
    if figure.shape is Shape.BAR:
        return h.g(class_=_series(number))[list(_bars(figure, number, curve, across, up))]
    ways = " ".join(f"{place(across(each.x))},{place(up(each.y))}" for each in curve.points)
    marks = [_mark(figure, number, curve, each, across, up) for each in curve.points]
    return h.g(class_=_series(number))[h.polyline(points=ways, class_="way"), marks]


def _mark(figure: Figure, number: int, curve: Curve, point: Point, across: Scale, up: Scale) -> Node:
    x, tip = across(point.x), h.title[one_line(_tip(figure, curve, point))]
    return [_whisker(x, point, up), h.path(d=outline(x, up(point.y), number), class_="dot")[tip]]


def _bars(figure: Figure, number: int, curve: Curve, across: Scale, up: Scale) -> Iterator[Node]:
    """Bars of one curve, each beside those of the others at the same place."""
    room = _BAR_SHARE * _room(figure, across)
    width = room / len(figure.curves)
    for point in curve.points:
        left = across(point.x) - room / 2 + number * width
        top, ground = up(point.y), up(max(0.0, up.low))
        tip = h.title[one_line(_tip(figure, curve, point))]
        yield box(left, min(top, ground), width, abs(ground - top), "dot")[tip]
        yield _whisker(left + width / 2, point, up)


def _room(figure: Figure, across: Scale) -> float:
    """Between two neighbouring places."""
    places = sorted({across(point.x) for curve in figure.curves for point in curve.points})
    return min(_apart(places), (_WIDTH - _LEFT - _RIGHT) / 4)


def _apart(places: Sequence[float]) -> float:
    return min((after - before for before, after in pairwise(places)), default=_WIDTH)


def _whisker(x: float, point: Point, up: Scale) -> Node:
    if point.low is None or point.high is None:
        return None
    return line(x, up(point.low), x, up(point.high), "whisker")


def _tip(figure: Figure, curve: Curve, point: Point) -> str:
    where = figure.x.names[round(point.x)] if figure.x.names else f"{point.x:g} {figure.x.unit}".strip()
    interval = "" if point.low is None or point.high is None else f" ({shown(point.low)} to {shown(point.high)})"
    return f"{curve.label}, {where}: {shown(point.y)} {figure.y.unit}".strip() + interval


def _series(number: int) -> str:
    return f"series s{number % COLOURS}"
