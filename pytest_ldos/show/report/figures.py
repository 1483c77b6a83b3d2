"""Charts of breaking points, studies, histories and sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Final

from htpy import Node, fragment

from pytest_ldos.base.text import format_quantity, percent
from pytest_ldos.campaign.bisection import LevelState, Spacing
from pytest_ldos.campaign.breaking_result import BreakingResult
from pytest_ldos.campaign.cells import Value, show_value
from pytest_ldos.instruments import study
from pytest_ldos.instruments.study import Curve, Figure
from pytest_ldos.judge.baseline.trend import CommitPoint, Trend
from pytest_ldos.show.report import sweep
from pytest_ldos.show.report.breaking import level_of
from pytest_ldos.show.report.chart import COLOURS, SHAPES, Axis, Chart, Field, Mark, Rule, Series, Shape, spans_decades
from pytest_ldos.show.report.history import Shown, describe, describe_marks
from pytest_ldos.show.report.study import shown
from pytest_ldos.show.report.svg import draw, draw_legend, render_png, render_svg

_FEWEST_LEVELS: Final = 3
_STEPS: Final = 120
_ROOM: Final = 0.03  # margin at either end, as a share of the range
_SHARES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_KINDS: Final = {LevelState.HOLDS: ("holds", "good"), LevelState.BREAKS: ("breaks", "bad")}
_OPEN: Final = ("plain", "muted")


def draw_levels(result: BreakingResult) -> Node:
    """A point with its interval for every tested level; its colour and its words show the decision."""
    scale = result.plan.search.scale  # rises to the right even if lower levels are harsher
    levels = Axis(low=scale.low, high=scale.high, is_log=scale.spacing is Spacing.LOG)
    across = Axis(low=levels.at(-_ROOM), high=levels.at(1 + _ROOM), is_log=levels.is_log, title=result.plan.address)
    fields: tuple[Field, ...] = ()
    if result.holds is not None and result.breaks is not None:
        low, high = sorted((result.holds, result.breaks))
        word = "threshold"
        held = Field(kind="floor", low=low, high=high, colour="field", label=word, label_colour="head", is_headed=True)
        fields = (held,)
    series = []
    if result.curve is not None and len(result.levels) >= _FEWEST_LEVELS:
        steps = [number / _STEPS for number in range(_STEPS + 1)]
        marks = tuple(Mark(levels.at(1 - step if scale.is_falling else step), result.curve(step)) for step in steps)
        series.append(Series(kind="curve", marks=marks, colour="head", line="--"))
    for each in result.levels:
        if each.trials:
            kind, colour = _KINDS.get(each.standing, _OPEN)
            tip = f"{level_of(result, each.level)}: {each.broken} of {each.trials} broken, {each.standing.value}"
            mark = Mark(each.level, each.broken / each.trials, tip, each.low, each.high)
            series.append(Series(kind=f"point {kind}", marks=(mark,), colour=colour, shape=Shape.CIRCLE, size=10))
    return draw(
        Chart(
            title=f"Share of broken trials over {result.plan.address}, with intervals",
            x=across,
            y=Axis(low=0.0, high=1.0, ticks=tuple((share, percent(share, 0)) for share in _SHARES)),
            fields=fields,
            rules=(Rule(kind="boundary", value=result.plan.search.boundary),),
            series=tuple(series),
            width=600,
            height=300,
            left=52,
            right=24,
            bottom=42,
        )
    )


_BAR_ROOM: Final = 0.06
_BAR_SHARE: Final = 0.8  # share of the distance between two positions that bars fill


def draw_figure(figure: Figure) -> Node:
    """A legend, unless there is a single curve, and the curves."""
    names = [curve.label for curve in figure.curves]
    title = f"{figure.y.title} over {figure.x.title}: {', '.join(names)}"
    series = tuple(_series(figure, number, curve) for number, curve in enumerate(figure.curves))
    chart = Chart(title=title, x=_across(figure), y=_up(figure), series=series, height=262, bottom=48)
    return fragment[draw_legend("Curves", names), draw(chart)]


def _up(figure: Figure) -> Axis:
    """The vertical axis; for bars it begins at zero, unless a value is negative."""
    points = [point for curve in figure.curves for point in curve.points]
    values = [value for each in points for value in (each.y, each.low, each.high) if value is not None]
    if figure.shape is not study.Shape.BAR or figure.y.is_log:
        return Axis.around(values, title=figure.y.unit, is_log=figure.y.is_log)
    low, high = min([0.0, *values]), max([0.0, *values])
    room = _BAR_ROOM * (high - low) or 1.0
    return Axis(low=low - room if low else 0.0, high=high + room, title=figure.y.unit)


def _across(figure: Figure) -> Axis:
    axis = figure.x
    title = f"{axis.title}{f' [{axis.unit}]' if axis.unit else ''}{', log' if axis.is_log else ''}"
    if axis.names:
        return Axis(low=-0.5, high=len(axis.names) - 0.5, title=title, ticks=tuple(enumerate(axis.names)))
    return Axis.around([point.x for curve in figure.curves for point in curve.points], title=title, is_log=axis.is_log)


def _series(figure: Figure, number: int, curve: Curve) -> Series:
    colour = f"s{number % COLOURS}"
    if figure.shape is study.Shape.BAR:
        axis, places = _across(figure), sorted({point.x for each in figure.curves for point in each.points})
        room = min([(axis.high - axis.low) / 4, *(after - before for before, after in pairwise(places))])
        width = _BAR_SHARE * room / len(figure.curves)
        marks = tuple(_marks(figure, curve, shift=(number - len(figure.curves) / 2) * width))
        return Series(kind="bar", marks=marks, colour=colour, shape=Shape.BAR, size=width)
    marks = tuple(_marks(figure, curve))
    return Series(kind="dot", marks=marks, colour=colour, shape=SHAPES[number % len(SHAPES)], line="-")


def _marks(figure: Figure, curve: Curve, shift: float = 0.0) -> Iterator[Mark]:
    for point in curve.points:
        has_interval = point.low is not None and point.high is not None
        low, high = (point.low, point.high) if has_interval else (None, None)
        where = figure.x.names[round(point.x)] if figure.x.names else f"{point.x:g} {figure.x.unit}".strip()
        interval = f" ({shown(point.low)} to {shown(point.high)})" if has_interval else ""
        tip = f"{curve.label}, {where}: {shown(point.y)} {figure.y.unit}".strip() + interval
        yield Mark(point.x + shift, point.y, tip, low, high)


_LETTERS: Final = 10
_FORMATS: Final = {"svg": render_svg, "png": render_png}


def render_image(shown: Shown, kind: str) -> bytes:
    ((trend, points),) = shown
    return _FORMATS[kind](chart_of(trend, points))


def chart_of(trend: Trend, points: Sequence[CommitPoint]) -> Chart:
    """The commits with a value."""
    drawn = [point for point in points if math.isfinite(point.location)]
    marks = [_mark(trend, number, point) for number, point in enumerate(drawn)]
    anchors = tuple(_anchors(trend))
    keys = ((name, Series(kind=rule.kind, marks=(), colour=rule.colour, line=rule.line)) for name, rule in anchors)
    values = [value for mark in marks for value in (mark.y, mark.low, mark.high) if value is not None]
    values += [rule.value for _, rule in anchors]
    names = tuple(_trend_series(trend, drawn, marks))
    ticks = tuple((number, point.label[:_LETTERS]) for number, point in enumerate(drawn))
    return Chart(
        title=describe(trend.series),
        x=Axis(low=-0.5, high=max(1, len(drawn)) - 0.5, title="commit", ticks=ticks),
        y=Axis.around(values, title=f"{trend.series.metric}, {trend.series.unit}"),
        series=tuple(series for _, series in names),
        rules=tuple(rule for _, rule in anchors),
        names=(*names, *keys),
        width=900,
        height=360,
        right=40,
        top=44,
        bottom=60,
    )


def _trend_series(trend: Trend, drawn: Sequence[CommitPoint], marks: Sequence[Mark]) -> Iterator[tuple[str, Series]]:
    every = Series(kind="commit", marks=tuple(marks), colour="head", shape=Shape.CIRCLE, line="-", size=6)
    yield "location and 95 % interval", every
    pairs = [(point, Mark(mark.x, mark.y, mark.tip)) for point, mark in zip(drawn, marks, strict=True)]
    if pinned := tuple(mark for point, mark in pairs if trend.is_pinned(point)):
        yield "pinned", Series(kind="pin", marks=pinned, colour="base", shape=Shape.SQUARE, is_hollow=True, size=12)
    if levels := tuple(mark for point, mark in pairs if point.change_point):
        yield "level changes", Series(kind="level", marks=levels, colour="bad", shape=Shape.DIAMOND, size=10)
    if creeps := tuple(mark for point, mark in pairs if point.creeps):
        yield "crept away", Series(kind="creep", marks=creeps, colour="doubt", shape=Shape.TRIANGLE, size=11)


def _mark(trend: Trend, number: int, point: CommitPoint) -> Mark:
    value = f"{format_quantity(point.location, trend.series.unit)} ({point.count} trials)"
    tip = ", ".join((f"{point.label}: {value}", *describe_marks(trend, point)))
    low, high = (point.low, point.high) if math.isfinite(point.low) and math.isfinite(point.high) else (None, None)
    return Mark(number, point.location, tip, low, high)


def _anchors(trend: Trend) -> Iterator[tuple[str, Rule]]:
    name = "pinned anchor" if trend.pinned else "first runs"
    for label, value, dashes in ((name, trend.anchor, "--"), ("rolling anchor", trend.rolling, ":")):
        if value is not None:
            yield label, Rule(kind="anchor", value=value, line=dashes)


_APART: Final = 7.0  # offset between the points of two lines, so that intervals do not overlap [px]
_FARTHEST: Final = 22.0
_BELOW: Final = 10.0  # distance from the axis to cells without a number [px]


@dataclass(frozen=True)
class CellPoint:
    cell: sweep.CellReport
    value: float | None
    low: float | None
    high: float | None
    tip: str


def _draw_cells(
    report: sweep.SweepReport,
    name: str,
    unit: str,
    of: Callable[[sweep.CellReport], CellPoint],
    limits: tuple[float, float] | None = None,
) -> list[Node]:
    """A drawing of a quantity for each combination of values of the third and later axes."""
    points = [of(cell) for cell in report.cells]
    bounds = [(each.value, each.low, each.high) for each in points if each.value is not None]
    values = [number for each in bounds for number in each if number is not None]
    if limits is None:
        is_log = spans_decades(values)
        up = Axis.around(values, title=f"{unit or 'value'}{', log' if is_log else ''}", is_log=is_log)
    else:
        up = Axis(low=limits[0], high=limits[1], title=unit or "value")
    return [
        draw(_chart(report, name, [each for each in points if each.cell.values[2:] == facet], up, facet))
        for facet in dict.fromkeys(cell.values[2:] for cell in report.cells)
    ]


def series_of(report: sweep.SweepReport) -> list[tuple[Value, ...]]:
    """A line for each value of the second axis; with one axis, a single line without a name."""
    return list(dict.fromkeys(cell.values[1:2] for cell in report.cells))


def _chart(
    report: sweep.SweepReport, name: str, points: Sequence[CellPoint], up: Axis, facet: tuple[Value, ...]
) -> Chart:
    axis, *_ = report.axes
    note = ", ".join(f"{each.name}={show_value(value)}" for each, value in zip(report.axes[2:], facet, strict=True))
    series = series_of(report)
    chart = Chart(
        title=f"{name} over {axis.name}{f', {note}' if note else ''}",
        detail="; ".join(each.tip for each in points),
        note=note,
        x=_cells_across(axis),
        y=up,
        bottom=58,
        below=28,
    )
    drawn: list[Series] = []
    for number, value in enumerate(series):
        drawn += _line(chart, [each for each in points if each.cell.values[1:2] == value], axis, number, len(series))
    return replace(chart, series=tuple(drawn))


def _cells_across(axis: sweep.AxisReport) -> Axis:
    """Numbers to scale, names at equal distances."""
    labels = [show_value(value) for value in axis.values]
    places = [_place(axis, value) for value in axis.values]
    ticks = tuple(zip(places, labels, strict=True))
    if not axis.is_numeric:
        return Axis(low=-0.5, high=len(labels) - 0.5, title=axis.name, ticks=ticks)
    is_log = spans_decades(places)
    return Axis.around(places, title=f"{axis.name}{', log' if is_log else ''}", is_log=is_log, ticks=ticks)


def _place(axis: sweep.AxisReport, value: Value) -> float:
    return float(str(value)) if axis.is_numeric else float(axis.values.index(value))


def _line(chart: Chart, points: Sequence[CellPoint], axis: sweep.AxisReport, number: int, of: int) -> Iterator[Series]:
    """Joined medians of valid cells; other cells are crossed out, and cells without a number are crosses."""
    shift = max(-_FARTHEST, min(_FARTHEST, _APART * (number - (of - 1) / 2)))
    colour, shape = f"s{number % COLOURS}", SHAPES[number % len(SHAPES)]

    def mark(point: CellPoint) -> Mark:
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


def draw_lines(report: sweep.SweepReport) -> Node:
    """Legend with each line's value of the second axis; nothing for a single line."""
    if len(report.axes) < 2:
        return None
    return draw_legend("Lines", [f"{report.axes[1].name}={show_value(value)}" for (value,) in series_of(report)])


def draw_success(report: sweep.SweepReport) -> Node:
    def point(cell: sweep.CellReport) -> CellPoint:
        share = 100 * cell.successes / cell.trials if cell.trials else None
        low, high = (100 * cell.success_low, 100 * cell.success_high) if cell.trials else (None, None)
        return CellPoint(cell, share, low, high, f"{cell.label}: {sweep.succeeded(cell)} succeeded{_state(cell)}")

    return _draw_cells(report, "success rate", "%", point, limits=(-4, 104))


def draw_load(report: sweep.SweepReport, number: sweep.LoadNumber) -> Node:
    def point(cell: sweep.CellReport) -> CellPoint:
        value = cell.load_numbers.get(number.key)
        value_text = "no value" if value is None else f"{value:.4g} {number.unit}"
        return CellPoint(cell, value, value, value, f"{cell.label}: {value_text}{_state(cell)}")

    return _draw_cells(report, number.title, number.unit, point, limits=(-4, 104) if number.unit == "%" else None)


def draw_metric(report: sweep.SweepReport, metric: sweep.MetricTitle) -> Node:
    def point(cell: sweep.CellReport) -> CellPoint:
        found = cell.metrics.get(metric.name)
        if found is None or found.median is None:
            state = "failed" if found is not None and found.values else "no value"
            return CellPoint(cell, None, None, None, f"{cell.label}: {state}{_state(cell)}")
        interval = f" ({sweep.interval_of(found)})" if sweep.interval_of(found) else ""
        tip = f"{cell.label}: {sweep.median_of(found, metric)}{interval}{_state(cell)}"
        return CellPoint(cell, found.median, found.low, found.high, tip)

    return _draw_cells(report, metric.name, metric.unit, point)


def _state(cell: sweep.CellReport) -> str:
    return "" if cell.is_valid else f", {cell.state}"
