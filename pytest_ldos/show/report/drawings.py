"""Drawings in SVG of a scenario and of profiles; names of measured programs are text, never markup."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import accumulate, groupby
from typing import Final

import htpy as h
from htpy import Element, Node
from markupsafe import Markup

from pytest_ldos.base.text import Rendered, format_quantity, one_line, percent
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.record.profiles import Change as FrameChange
from pytest_ldos.record.profiles import Difference, FoldedStacks, Frame, build_tree
from pytest_ldos.show.report.chart import Axis, Chart, Field, Label, Mark, Rule, Series, Shape, cut
from pytest_ldos.show.report.document import Change, MetricReport, PathReport, Point, Sample, Segment
from pytest_ldos.show.report.flame import Place, Weight, describe_change, describe_frame, place_frames
from pytest_ldos.show.report.svg import box, draw, line, ornament, place, words
from pytest_ldos.show.report.words import median_of


def trials(version: str, marks: Iterable[Mark]) -> Series:
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
_BESIDE: Final = 12.0  # distance from the axis to failed trials [px]


def draw_distribution(metric: MetricReport, samples: Sequence[tuple[str, str, Sample]]) -> Node:
    """Draws a row for each sample (``base`` or ``head``, label, values): marks above values, a line at the median."""
    values = [point.value for *_, sample in samples for point in sample.points if point.value is not None]
    medians = ", ".join(f"{label} {median_of(metric, sample)}" for _, label, sample in samples)
    rows = [_ROW * (len(samples) - number) - 72.0 for number in range(len(samples))]
    chart = Chart(
        title=f"Distribution of {metric.label}; medians: {medians}",
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
    stack: list[Mark] = []
    columns: dict[int, int] = {}
    measured = [(point.value, point.trial) for point in sample.points if point.value is not None]
    for value, number in sorted(measured, key=lambda each: each[0]):
        column = round(chart.x.share(value) * chart.inner_width / _PITCH)
        level = columns[column] = columns.get(column, -1) + 1
        tip = f"trial {number}: {format_quantity(value, metric.unit)}"
        stack.append(Mark(value, row + _PITCH * (level % _MOST_IN_COLUMN), tip))
    yield trials(version, stack)
    missing = [point for point in sample.points if point.value is None][:_MOST_IN_COLUMN]
    x = chart.x.at(1 + _BESIDE / chart.inner_width)
    yield failed(Mark(x, row + _PITCH * level, f"trial {each.trial}") for level, each in enumerate(missing))


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
    content = [
        words(x, 12, "no change" if value == 0 else percent(math.expm1(value), 0, signed=True), anchor=anchor)
        for x, value, anchor in ((_START, scale.low, "start"), (_WIDTH / 2, 0.0, "middle"), (_END, scale.high, "end"))
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
    low, high = change.low, change.high
    left = _place(low, scale, _END if change.is_endless else _START)
    right = _place(high, scale, _END)
    yield line(left, _MIDDLE, right, _MIDDLE, f"interval {kind}")
    goes_left = not change.is_endless and (low is None or low <= 0 or math.log(low) < scale.low)
    goes_right = high is None or (high > 0 and math.log(high) > scale.high)
    for x, direction, is_arrow in ((left, -1, goes_left), (right, 1, goes_right)):
        yield _arrow(x, direction, kind) if is_arrow else line(x, _MIDDLE - 4, x, _MIDDLE + 4, f"interval {kind}")
    if change.ratio is not None:
        x = _place(change.ratio, scale, _END)
        yield h.circle(cx=place(x), cy=place(_MIDDLE), r="4.5", class_=f"point {kind}")


def _place(ratio: float | None, scale: Axis, without: float) -> float:
    if ratio is None:
        return without
    return _x(scale, math.log(ratio)) if ratio > 0 else _START


def _arrow(x: float, direction: int, kind: str) -> Node:
    tip, back = x + 7 * direction, x - direction
    corners = ((tip, _MIDDLE), (back, _MIDDLE - 5), (back, _MIDDLE + 5))
    points = " ".join(f"{place(across)},{place(down)}" for across, down in corners)
    return h.polygon(points=points, class_=f"point {kind}")


def segment_scale(path: PathReport) -> Axis:
    """A common scale for all parts of a path, in nanoseconds, which includes zero."""
    found = [bound for each in path.segments for bound in (each.change_ns, each.low_ns, each.high_ns)]
    return Axis.around([0.0, *(bound for bound in found if bound is not None)])


def draw_segment(segment: Segment, scale: Axis) -> Node:
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


_LETTER: Final = 7.5  # largest width of a letter in a label [px]
_ABOVE: Final = 9.0  # distance from the chart to failed trials [px]


@dataclass(frozen=True)
class _Block:
    version: str
    label: str
    points: tuple[Point, ...]


def draw_timeline(metric: MetricReport, samples: Sequence[tuple[str, str, Sample]], *, is_interleaved: bool) -> Node:
    """Draws every trial in order, with a field for each stack start; the base comes first unless interleaved."""
    blocks = _blocks(samples, is_interleaved=is_interleaved)
    edges = [0, *accumulate(len(block.points) for block in blocks)]
    values = [point.value for block in blocks for point in block.points if point.value is not None]
    chart = Chart(
        title=f"{metric.label} of {edges[-1]} trials in order, in {len(blocks)} stack starts",
        x=Axis(low=0, high=max(1, edges[-1]), ticks=()),
        y=Axis.around(values, title=metric.unit),
        height=202,
        right=8,
        top=34,
        bottom=28,
    )
    medians = [(version, sample.median) for version, _, sample in samples if sample.median is not None]
    ends = ((Mark(x, chart.y.low), Mark(x, chart.y.high)) for x in edges[:-1])
    starts = [Series(kind="grid", marks=each, colour="edge", line="-") for each in ends]
    return draw(
        replace(
            chart,
            fields=tuple(_fields(blocks, edges, chart)),
            rules=tuple(Rule(kind=f"{each} median", value=value, colour=each, line="--") for each, value in medians),
            series=(*starts, *_marks(metric, blocks, chart)),
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
        width, names = pixels * (after - first), (one_line(block.label), block.version)
        yield Field(
            kind=f"field {block.version}",
            low=first,
            high=after,
            colour="field" if block.version == "base" else "",
            label=next((name for name in names if _LETTER * len(name) <= width), ""),
            label_colour=block.version,
        )


def _marks(metric: MetricReport, blocks: Sequence[_Block], chart: Chart) -> Iterator[Series]:
    in_order = ((block, point) for block in blocks for point in block.points)
    ordered = [(number + 0.5, block, point) for number, (block, point) in enumerate(in_order)]
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


_FLAME_WIDTH: Final = 1200.0
_MARGIN: Final = 12.0
_FRAME_HEIGHT: Final = 17.0
_LINE: Final = 17.0
_FRAME_LETTER: Final = 6.7  # width of a letter [px]
_NARROWEST: Final = 0.4  # least width of a drawn frame [px]
_PADDING: Final = 3.0
_FEWEST_LETTERS: Final = 3
_WARM: Final = 8
_STEPS: Final = 5  # number of colours of a change in flame.css
_STEP: Final = 0.02  # change of share per step of colour


def draw_flame(profile: FoldedStacks, *, title: str, notes: Sequence[str] = ()) -> Rendered:
    """A flame graph: width is a frame's share of samples; frames above it are its callees."""
    tree = build_tree([profile])
    whole = max(tree.counts[0], 1)
    picture = _Picture(
        weight=lambda frame: frame.counts[0] / whole,
        kind=lambda frame: f"warm{zlib.crc32(one_line(frame.name).encode()) % _WARM}" if frame.path else "all",
        tip=lambda frame: describe_frame(frame, whole),
    )
    meaning = f"{whole} samples; width: share of them; a frame was called by the one below it"
    return _draw_frames(tree, picture, title, [meaning, *notes])


def draw_difference(difference: Difference, *, title: str, notes: Sequence[str] = ()) -> Rendered:
    """A differential flame graph: width is the mean share, colour the change if it is significant."""
    bases, heads = difference.base_samples, difference.head_samples
    picture = _Picture(
        weight=lambda frame: (frame.counts[0] / bases + frame.counts[1] / heads) / 2,
        kind=lambda frame: _colour(difference.changes[frame.path]) if frame.path else "all",
        tip=lambda frame: (
            describe_change(difference.changes[frame.path], frame)
            if frame.path
            else f"all: {difference.base_samples} and {difference.head_samples} samples"
        ),
    )
    return _draw_frames(difference.tree, picture, title, notes)


@dataclass(frozen=True)
class _Picture:
    """The look of frames: width, name of the colour in the style sheet, and tooltip."""

    weight: Weight
    kind: Callable[[Frame], str]
    tip: Callable[[Frame], str]


def _colour(change: FrameChange) -> str:
    if not change.is_certain:
        return "same"
    step = min(_STEPS, 1 + int(abs(change.change) / _STEP))
    return f"{'more' if change.change > 0 else 'less'}{step}"


def _draw_frames(tree: Frame, picture: _Picture, title: str, lines: Iterable[str]) -> Rendered:
    inner = _FLAME_WIDTH - 2 * _MARGIN
    places = list(place_frames(tree, picture.weight, narrowest=_NARROWEST / inner))
    notes = [one_line(line) for line in lines]
    top = _MARGIN + 24 + _LINE * len(notes)
    bottom = top + _FRAME_HEIGHT * max(each.frame.depth for each in places)
    frames = [_frame(each, picture, inner, bottom - _FRAME_HEIGHT * each.frame.depth) for each in places]
    heading: list[Node] = [
        words(_MARGIN, _MARGIN + 14, title, kind="title"),
        [words(_MARGIN, _MARGIN + 34 + _LINE * number, line, kind="note") for number, line in enumerate(notes)],
    ]
    height = bottom + _FRAME_HEIGHT + _MARGIN
    size = {"viewBox": f"0 0 {place(_FLAME_WIDTH)} {place(height)}", "xmlns": "http://www.w3.org/2000/svg"}
    style = files("pytest_ldos.show.page").joinpath("flame.css").read_text("utf-8")
    drawn = h.svg(size, width=place(_FLAME_WIDTH), height=place(height), role="img", aria_label=one_line(title))[
        h.style[Markup(style)],  # noqa: S704 - a file of this package
        box(0, 0, _FLAME_WIDTH, height, "paper"),
        heading,
        frames,
    ]
    return Rendered(f"{one_line(str(drawn))}\n")


def _frame(at: Place, picture: _Picture, inner: float, y: float) -> Element:
    left, width = _MARGIN + inner * at.left, inner * at.width
    label = _fitting(one_line(at.frame.name), width)
    return h.g[
        h.title[one_line(picture.tip(at.frame))],
        box(left, y, width, _FRAME_HEIGHT - 1, picture.kind(at.frame)),
        words(left + _PADDING, y + 12, label, kind="name") if label else None,
    ]


def _fitting(name: str, width: float) -> str:
    """As much of a name as there is room for; empty if that is too little."""
    room = int((width - 2 * _PADDING) / _FRAME_LETTER)
    return cut(name, room) if room >= min(len(name), _FEWEST_LETTERS) else ""
