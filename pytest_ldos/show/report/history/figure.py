"""Trends as charts: commits from left to right, with their intervals, marks and anchors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from pytest_ldos.base.text import format_quantity
from pytest_ldos.judge.baseline.history.trend import CommitPoint, Trend
from pytest_ldos.show.report.history.table import Shown, describe, describe_marks
from pytest_ldos.show.report.plots.chart import Axis, Chart, Mark, Rule, Series, Shape
from pytest_ldos.show.report.plots.svg import render_png, render_svg

_LETTERS: Final = 10
_FORMATS: Final = {"svg": render_svg, "png": render_png}


def render_image(shown: Shown, kind: str) -> bytes:
    """The chart of one trend as ``svg`` or ``png``."""
    ((trend, points),) = shown
    return _FORMATS[kind](chart_of(trend, points))


def chart_of(trend: Trend, points: Sequence[CommitPoint]) -> Chart:
    """The commits with a value."""
    drawn = [point for point in points if math.isfinite(point.location)]
    marks = [_mark(trend, number, point) for number, point in enumerate(drawn)]
    anchors = tuple(_anchors(trend))
    values = [value for mark in marks for value in (mark.y, mark.low, mark.high) if value is not None]
    values += [rule.value for _, rule in anchors]
    names = tuple(_series(trend, drawn, marks))
    ticks = tuple((number, point.label[:_LETTERS]) for number, point in enumerate(drawn))
    return Chart(
        title=describe(trend.series),
        x=Axis(low=-0.5, high=max(1, len(drawn)) - 0.5, title="commit", ticks=ticks),
        y=Axis.around(values, title=f"{trend.series.metric}, {trend.series.unit}"),
        series=tuple(series for _, series in names),
        rules=tuple(rule for _, rule in anchors),
        names=(*names, *((name, _key(rule)) for name, rule in anchors)),
        width=900,
        height=360,
        right=40,
        top=44,
        bottom=60,
    )


def _series(trend: Trend, drawn: Sequence[CommitPoint], marks: Sequence[Mark]) -> Iterator[tuple[str, Series]]:
    """All commits, and on top the remarkable ones, by their names in the legend."""
    pairs = [(point, Mark(mark.x, mark.y, mark.tip)) for point, mark in zip(drawn, marks, strict=True)]
    pinned = tuple(mark for point, mark in pairs if trend.is_pinned(point))
    levels = tuple(mark for point, mark in pairs if point.change_point)
    creeps = tuple(mark for point, mark in pairs if point.creeps)
    yield (
        "location and 95 % interval",
        Series(kind="commit", marks=tuple(marks), colour="head", shape=Shape.CIRCLE, line="-", size=6),
    )
    if pinned:
        yield "pinned", Series(kind="pin", marks=pinned, colour="base", shape=Shape.SQUARE, is_hollow=True, size=12)
    if levels:
        yield "level changes", Series(kind="level", marks=levels, colour="bad", shape=Shape.DIAMOND, size=10)
    if creeps:
        yield "crept away", Series(kind="creep", marks=creeps, colour="doubt", shape=Shape.TRIANGLE, size=11)


def _mark(trend: Trend, number: int, point: CommitPoint) -> Mark:
    value = f"{format_quantity(point.location, trend.series.unit)} ({point.count} trials)"
    tip = ", ".join((f"{point.label}: {value}", *describe_marks(trend, point)))
    has_interval = math.isfinite(point.low) and math.isfinite(point.high)
    low, high = (point.low, point.high) if has_interval else (None, None)
    return Mark(number, point.location, tip, low, high)


def _anchors(trend: Trend) -> Iterator[tuple[str, Rule]]:
    """Anchors as rules across the chart, by their names in the legend."""
    name = "pinned anchor" if trend.pinned else "first runs"
    for label, value, dashes in ((name, trend.anchor, "--"), ("rolling anchor", trend.rolling, ":")):
        if value is not None:
            yield label, Rule(kind="anchor", value=value, line=dashes)


def _key(rule: Rule) -> Series:
    """The look of a rule, for the legend."""
    return Series(kind=rule.kind, marks=(), colour=rule.colour, line=rule.line)
