"""Drawings of a scenario: intervals, distributions, values in order, waterfalls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import format_quantity, one_line
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.document import Change, MetricReport, PathReport, Point, Sample, Segment
from pytest_ldos.show.report.html.drawing import box, line, ornament, place, words
from pytest_ldos.show.report.plots.chart import Axis, Chart, Field, Label, Mark, Rule, Series, Shape, cut
from pytest_ldos.show.report.plots.svg import draw
from pytest_ldos.show.report.trace.drawings import draw_waterfalls
from pytest_ldos.show.report.trace.passages import Part, Waterfall, mark
from pytest_ldos.show.report.words import format_change, median_of


def trials(version: str, marks: Iterable[Mark]) -> Series:
    """Trials of ``base`` or ``head``."""
    is_head = version == "head"
    return Series(
        kind=f"mark {version}",
        marks=tuple(marks),
        colour=version,
        shape=Shape.CIRCLE if is_head else Shape.DIAMOND,
        is_hollow=not is_head,
        size=7.2 if is_head else 6.5,
    )


def failed(marks: Iterable[Mark]) -> Series:
    """Trials without a value; the tooltip of a mark names its trial."""
    named = tuple(replace(mark, tip=f"{mark.tip} failed: slower than any") for mark in marks)
    return Series(kind="mark failed", marks=named, colour="bad", shape=Shape.CROSS)


_ROW: Final = 84
_PITCH: Final = 8.0
_MOST_IN_COLUMN: Final = 8
_LETTERS: Final = 14
_BESIDE: Final = 12.0
"""Distance from the axis to failed trials [px]."""


def draw_distribution(metric: MetricReport, samples: Sequence[tuple[str, str, Sample]]) -> Node:
    """Draws every trial as a mark above its value, with a row for each version, and medians as lines.

    Args:
        samples: version (``base``, ``head``), its label, its values.
    """
    values = [point.value for *_, sample in samples for point in sample.points if point.value is not None]
    medians = ", ".join(f"{label} {median_of(metric, sample)}" for _, label, sample in samples)
    rows = [_ROW * (len(samples) - number) - 72.0 for number in range(len(samples))]
    chart = Chart(
        title=f"Distribution of {metric.name} {metric.title}; medians: {medians}",
        x=Axis.around(values, title=metric.unit),
        y=Axis(low=0.0, high=_ROW * len(samples), ticks=()),
        height=_ROW * len(samples) + 42,
        left=92,
        right=22,
        top=6,
        bottom=36,
    )
    named = [
        Label(x=chart.x.at(-88 / chart.inner_width), y=row + 20, text=cut(one_line(label), _LETTERS), colour=version)
        for row, (version, label, _) in zip(rows, samples, strict=True)
    ]
    series = [
        each
        for row, (version, _, sample) in zip(rows, samples, strict=True)
        for each in _row(chart, metric, version, sample, row)
    ]
    return draw(replace(chart, labels=tuple(named), series=tuple(series)))


def _row(chart: Chart, metric: MetricReport, version: str, sample: Sample, row: float) -> Iterator[Series]:
    if sample.median is not None:
        ends = Mark(sample.median, row - 8), Mark(sample.median, row + 62)
        yield Series(kind=version, marks=ends, colour=version, line="-")
    yield trials(version, _stack(chart, metric, sample, row))
    missing = [point for point in sample.points if point.value is None][:_MOST_IN_COLUMN]
    x = chart.x.at(1 + _BESIDE / chart.inner_width)
    yield failed(Mark(x, row + _PITCH * level, f"trial {each.trial}") for level, each in enumerate(missing))


def _stack(chart: Chart, metric: MetricReport, sample: Sample, row: float) -> Iterator[Mark]:
    """Stacks marks that would overlap."""
    columns: dict[int, int] = {}
    for point in sorted(sample.points, key=lambda point: point.value or 0.0):
        if point.value is not None:
            column = round(chart.x.share(point.value) * chart.inner_width / _PITCH)
            level = columns.get(column, 0)
            columns[column] = level + 1
            tip = f"trial {point.trial}: {format_quantity(point.value, metric.unit)}"
            yield Mark(point.value, row + _PITCH * (level % _MOST_IN_COLUMN), tip)


_WIDTH: Final = 240
_HEIGHT: Final = 26
_MIDDLE: Final = _HEIGHT / 2
_START: Final = 10
_END: Final = _WIDTH - _START
_SMALLEST_SPAN: Final = math.log(1.1)
_LARGEST_SPAN: Final = math.log(4.0)


def scale_of(changes: Iterable[Change]) -> Axis:
    """A common scale for all changes, in logarithms of ratios, with zero in the middle."""
    bounds = [bound for change in changes for bound in (change.ratio, change.low, change.high)]
    span = max((abs(math.log(bound)) for bound in bounds if bound is not None and bound > 0), default=0.0)
    span = min(_LARGEST_SPAN, max(_SMALLEST_SPAN, 1.08 * span))
    return Axis(low=-span, high=span)


def draw_scale(scale: Axis) -> Node:
    """Draws the scale's ends and middle, for the head of the table's column."""
    ends = ((_START, scale.low, "start"), (_WIDTH / 2, 0.0, "middle"), (_END, scale.high, "end"))
    content = [
        words(x, 12, "no change" if value == 0 else f"{100 * math.expm1(value):+.0f} %", anchor)
        for x, value, anchor in ends
    ]
    return ornament(_WIDTH, 16, content)


def draw_change(change: Change, verdict: Verdict | None, scale: Axis) -> Node:
    """Draws the interval as a line, the estimate as a point, and the floor as a field around zero."""
    kind = "plain" if verdict is None else verdict.tone.value
    floor = math.log1p(change.floor)
    left, zero, right = (_x(scale, value) for value in (-floor, 0.0, floor))
    content: list[Node] = [
        box(left, 2, right - left, _HEIGHT - 4, "floor"),
        line(zero, 0, zero, _HEIGHT, "zero"),
        None if not change.has_ratio else list(_interval(change, kind, scale)),
    ]
    return ornament(_WIDTH, _HEIGHT, content)


def _x(scale: Axis, value: float) -> float:
    return _START + scale.share(value) * (_END - _START)


def _interval(change: Change, kind: str, scale: Axis) -> Iterator[Node]:
    left = _place(change.low, scale, _END if change.is_endless else _START)
    right = _place(change.high, scale, _END)
    yield line(left, _MIDDLE, right, _MIDDLE, f"interval {kind}")
    yield from _ends(change, scale, left, right, kind)
    if change.ratio is not None:
        yield _point(_place(change.ratio, scale, _END), kind)


def _place(ratio: float | None, scale: Axis, without: float) -> float:
    if ratio is None:
        return without
    return _x(scale, math.log(ratio)) if ratio > 0 else _START


def _ends(change: Change, scale: Axis, left: float, right: float, kind: str) -> Iterator[Node]:
    """A bar at each end of the interval, or an arrow if it extends beyond the scale."""
    low, high = change.low, change.high
    goes_left = not change.is_endless and (low is None or low <= 0 or math.log(low) < scale.low)
    goes_right = high is None or (high > 0 and math.log(high) > scale.high)
    yield _arrow(left, -1, kind) if goes_left else line(left, _MIDDLE - 4, left, _MIDDLE + 4, f"interval {kind}")
    yield _arrow(right, 1, kind) if goes_right else line(right, _MIDDLE - 4, right, _MIDDLE + 4, f"interval {kind}")


def _arrow(x: float, direction: int, kind: str) -> Node:
    tip, back = x + 7 * direction, x - direction
    corners = ((tip, _MIDDLE), (back, _MIDDLE - 5), (back, _MIDDLE + 5))
    points = " ".join(f"{place(across)},{place(down)}" for across, down in corners)
    return h.polygon(points=points, class_=f"point {kind}")


def _point(x: float, kind: str) -> Node:
    return h.circle(cx=place(x), cy=place(_MIDDLE), r="4.5", class_=f"point {kind}")


def segment_scale(path: PathReport) -> Axis:
    """A common scale for all parts of a path, in nanoseconds, which includes zero."""
    found = [bound for each in path.segments for bound in (each.change_ns, each.low_ns, each.high_ns)]
    return Axis.around([0.0, *(bound for bound in found if bound is not None)])


def draw_segment(segment: Segment, scale: Axis) -> Node:
    """Draws a bar from zero to the estimate, with its interval."""
    kind = "certain" if segment.is_certain else "uncertain"
    zero, end = _x(scale, 0.0), _x(scale, segment.change_ns)
    low = _START if segment.low_ns is None else _x(scale, segment.low_ns)
    high = _END if segment.high_ns is None else _x(scale, segment.high_ns)
    content = [
        box(min(zero, end), 6, abs(end - zero), _HEIGHT - 12, f"bar {kind}"),
        line(zero, 0, zero, _HEIGHT, "zero"),
        line(low, _MIDDLE, high, _MIDDLE, "interval plain"),
    ]
    return ornament(_WIDTH, _HEIGHT, content)


_LETTER: Final = 7.5
"""Largest width of a letter in a label [px]."""

_ABOVE: Final = 9.0
"""Distance from the chart to failed trials [px]."""


@dataclass(frozen=True)
class _Block:
    """The trials between two stack starts."""

    version: str
    label: str
    points: tuple[Point, ...]


def draw_timeline(metric: MetricReport, samples: Sequence[tuple[str, str, Sample]], *, is_interleaved: bool) -> Node:
    """Draws every trial in order, with a field for each stack start.

    Args:
        samples: version (``base``, ``head``), its label, its values.
        is_interleaved: True if the versions were interleaved; otherwise the base was measured before.
    """
    blocks = _blocks(samples, is_interleaved=is_interleaved)
    edges = [0, *accumulate(len(block.points) for block in blocks)]
    values = [point.value for block in blocks for point in block.points if point.value is not None]
    chart = Chart(
        title=f"{metric.name} {metric.title} of {edges[-1]} trials in order, in {len(blocks)} stack starts",
        x=Axis(low=0, high=max(1, edges[-1]), ticks=()),
        y=Axis.around(values, title=metric.unit),
        height=202,
        right=8,
        top=34,
        bottom=28,
    )
    medians = [(version, sample.median) for version, _, sample in samples if sample.median is not None]
    return draw(
        replace(
            chart,
            fields=tuple(_fields(blocks, edges, chart)),
            rules=tuple(Rule(kind=f"{each} median", value=value, colour=each, line="--") for each, value in medians),
            series=(*_starts(edges, chart), *_marks(metric, blocks, chart)),
        )
    )


def _blocks(samples: Sequence[tuple[str, str, Sample]], *, is_interleaved: bool) -> list[_Block]:
    found = [
        (number, _Block(version, label, tuple(points)))
        for version, label, sample in samples
        for number, points in groupby(sample.points, key=lambda point: point.block)
    ]
    return [block for _, block in (sorted(found, key=lambda each: each[0]) if is_interleaved else found)]


def _fields(blocks: Sequence[_Block], edges: Sequence[int], chart: Chart) -> Iterator[Field]:
    pixels = chart.inner_width / chart.x.high
    for block, first, after in zip(blocks, edges, edges[1:], strict=False):
        yield Field(
            kind=f"field {block.version}",
            low=first,
            high=after,
            colour="field" if block.version == "base" else "",
            label=_fitting(block, pixels * (after - first)),
            label_colour=block.version,
        )


def _starts(edges: Sequence[int], chart: Chart) -> Iterator[Series]:
    for x in edges[:-1]:
        yield Series(kind="grid", marks=(Mark(x, chart.y.low), Mark(x, chart.y.high)), colour="edge", line="-")


def _fitting(block: _Block, width: float) -> str:
    """The longest name of a block that fits in its width; empty if none does."""
    names = (one_line(block.label), block.version)
    return next((name for name in names if _LETTER * len(name) <= width), "")


def _marks(metric: MetricReport, blocks: Sequence[_Block], chart: Chart) -> Iterator[Series]:
    ordered = [(number + 0.5, block, point) for number, (block, point) in enumerate(_in_order(blocks))]
    for version in ("base", "head"):
        yield trials(
            version,
            (
                Mark(x, point.value, f"{block.label}, trial {point.trial}: {format_quantity(point.value, metric.unit)}")
                for x, block, point in ordered
                if point.value is not None and block.version == version
            ),
        )
    top = chart.y.at(1 + _ABOVE / chart.inner_height)
    missing = [(x, block, point) for x, block, point in ordered if point.value is None]
    yield failed(Mark(x, top, f"{block.label}, trial {point.trial}") for x, block, point in missing)


def _in_order(blocks: Sequence[_Block]) -> Iterator[tuple[_Block, Point]]:
    for block in blocks:
        yield from ((block, point) for point in block.points)


def draw_path(path: PathReport, labels: tuple[str, str]) -> Node:
    """Draws medians of the parts of a path in both versions on one scale.

    Args:
        labels: of base and head.
    """
    blamed = next((each.name for each in path.segments if each.is_certain), "")
    base, head = (
        Waterfall(
            f"{path.path}, {label}",
            tuple(_part(each, blamed, is_head=is_head) for each in path.segments),
            whole_ns=round(path.whole.head_ns if is_head else path.whole.base_ns),
        )
        for label, is_head in zip(labels, (False, True), strict=True)
    )
    scale_ns = max(base.duration_ns, head.duration_ns)
    return draw_waterfalls([mark(each, blamed) for each in (base, head)], scale_ns=scale_ns)


def _part(segment: Segment, blamed: str, *, is_head: bool) -> Part:
    note = format_change(segment) if is_head and segment.name == blamed else ""
    return Part(segment.name, round(segment.head_ns if is_head else segment.base_ns), note)
