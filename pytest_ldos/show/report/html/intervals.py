"""Changes with their intervals: small drawings in the rows of a table, all on one scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.document import Change, PathReport, Segment
from pytest_ldos.show.report.html.drawing import box, line, ornament, place, words
from pytest_ldos.show.report.plots.chart import Axis

_WIDTH: Final = 240
_HEIGHT: Final = 26
_MIDDLE: Final = _HEIGHT / 2
_START: Final = 10
_END: Final = _WIDTH - _START
_SMALLEST_SPAN: Final = math.log(1.1)
_LARGEST_SPAN: Final = math.log(4.0)


def scale_of(changes: Iterable[Change]) -> Axis:
    """One scale of logarithms of ratios for all changes, with no change in its middle."""
    bounds = [bound for change in changes for bound in (change.ratio, change.low, change.high)]
    span = max((abs(math.log(bound)) for bound in bounds if bound is not None and bound > 0), default=0.0)
    span = min(_LARGEST_SPAN, max(_SMALLEST_SPAN, 1.08 * span))
    return Axis(low=-span, high=span)


def draw_scale(scale: Axis) -> Node:
    """The scale's ends and middle, for the head of the table's column."""
    ends = ((_START, scale.low, "start"), (_WIDTH / 2, 0.0, "middle"), (_END, scale.high, "end"))
    content = [
        words(x, 12, "no change" if value == 0 else f"{100 * math.expm1(value):+.0f} %", anchor)
        for x, value, anchor in ends
    ]
    return ornament(_WIDTH, 16, content)


def draw_change(change: Change, verdict: Verdict | None, scale: Axis) -> Node:
    """The interval as a line, the estimate as a point, the floor as a field around no change."""
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
    """A bar where the interval ends, an arrow where it goes on."""
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
    """One scale of nanoseconds for all parts of a path, with no change in it."""
    found = [bound for each in path.segments for bound in (each.change_ns, each.low_ns, each.high_ns)]
    return Axis.around([0.0, *(bound for bound in found if bound is not None)])


def draw_segment(segment: Segment, scale: Axis) -> Node:
    """A bar from no change to the estimate, with its interval."""
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
