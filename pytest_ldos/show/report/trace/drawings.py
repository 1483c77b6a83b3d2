"""Drawings of a trace: waterfalls, distributions, the graph, the goals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import htpy as h
import numpy as np
from htpy import Node

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.text import counted, format_duration, format_quantity, one_line
from pytest_ldos.measure.metrics.extract import TrialMetrics
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.measure.metrics.segments import kind_of
from pytest_ldos.show.page.html import untrusted_text
from pytest_ldos.show.page.model import Block, Drawing, Figure, Section, Text
from pytest_ldos.show.report.analysis import Measured
from pytest_ldos.show.report.html.drawing import box, line, place
from pytest_ldos.show.report.plots.chart import Axis, Chart, Mark, Series, Shape
from pytest_ldos.show.report.plots.svg import draw
from pytest_ldos.show.report.trace.graph import SMALL_LINE, Arrow, Box, Graph, Point, Rectangle, Way, lay_out
from pytest_ldos.show.report.trace.passages import Part, Waterfall, show_waterfalls
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.flow.critical import SegmentKind

_WIDTH: Final = 800.0
_WORDS: Final = 310.0
"""Width of the names of parts [px]."""

_ROW: Final = 20.0
_BAR: Final = 11.0
_LETTERS: Final = 50
_BOLD_LETTERS: Final = 42
_LETTER: Final = 6.8
"""Width of a letter, rounded up [px]."""

_GAP: Final = 4.0
_COLOURS: Final[Mapping[SegmentKind, str]] = {
    SegmentKind.PUBLISH: "s1",
    SegmentKind.TRANSPORT: "s2",
    SegmentKind.EXECUTOR_WAIT: "s4",
    SegmentKind.CALLBACK: "s0",
    SegmentKind.TIMER_WAIT: "s5",
    SegmentKind.CPU_WAIT: "s3",
    SegmentKind.MOTION: "s2",
    SegmentKind.PLANNING_STAGE: "s0",
}
"""Classes of colours in series.css; parts outside callbacks have none."""


def draw_waterfalls(shown: Sequence[Waterfall], *, scale_ns: int = 0) -> Node:
    """Draws waterfalls one below the other.

    Args:
        scale_ns: duration shown as the whole width; by default each passage's own.
    """
    longest = max((len(_label(part)) for each in shown for part in each.parts), default=0)
    room = _WIDTH - _WORDS - 2 * _GAP - longest * _LETTER
    return h.div[[_draw(each, room / max(scale_ns, each.duration_ns, 1)) for each in shown]]


def _draw(shown: Waterfall, scale: float) -> Node:
    height = _ROW * (len(shown.parts) + 1) + 4
    title = f"{shown.title}: {format_duration(shown.duration_ns if shown.whole_ns is None else shown.whole_ns)}"
    drawing = h.svg(
        {"viewBox": f"0 0 {place(_WIDTH)} {place(height)}"},
        class_="plot waterfall",
        role="img",
    )[
        h.title[one_line(title)],
        h.text(x="0", y="13", class_="strong")[one_line(title)],
        list(_rows(shown, scale)),
    ]
    return h.div(".scroll", role="region", aria_label=one_line(title), tabindex="0")[drawing]


def _rows(shown: Waterfall, scale: float) -> Iterator[Node]:
    begin, has_marked = 0, any(part.is_marked for part in shown.parts)
    for number, part in enumerate(shown.parts, 1):
        y, x = _ROW * number, _WORDS + begin * scale
        width = max(part.duration_ns * scale, 0.75)
        begin += part.duration_ns
        label, name = _label(part), one_line(part.name)
        kinds = f"part {_look(part, has_marked=has_marked)}"
        yield h.g(class_=kinds)[
            h.title[f"{name}: {label}"],
            line(_WORDS, y + _ROW - 2, _WIDTH, y + _ROW - 2, "grid"),
            h.text(x="0", y=place(y + 13), class_="name")[_cut(name, _BOLD_LETTERS if part.is_marked else _LETTERS)],
            box(x, y + 4, width, _BAR, "bar"),
            h.text(x=place(x + width + _GAP), y=place(y + 13))[label],
        ]


def _label(part: Part) -> str:
    """Duration and note, for the right of the bar."""
    return ", ".join(filter(None, (format_duration(part.duration_ns), one_line(part.note))))


def _look(part: Part, *, has_marked: bool) -> str:
    """Classes of a part; if some parts are marked, the others have no colour."""
    if has_marked and not part.is_marked:
        return "plain"
    return f"{colour_of(part.name)} marked" if part.is_marked else colour_of(part.name)


def colour_of(name: str) -> str:
    """Class of a part's colour, by the kind in its name."""
    kind = kind_of(name if ": " in name else f"{name}: ")
    return _COLOURS.get(kind, "plain") if kind is not None else "plain"


def _cut(name: str, letters: int) -> str:
    return name if len(name) <= letters else f"{name[: letters - 1]}…"


_MOST_BINS: Final = 30
_DECADE: Final = 10.0
_TICKS: Final = 5


def draw_latencies(name: str, latencies_ns: Sequence[int]) -> Node:
    """Draws the number of passages by latency."""
    return draw(
        _histogram(name, [max(float(each), 1.0) for each in latencies_ns], format_duration, "passage", width=760.0)
    )


def draw_values(name: str, values: Sequence[float], unit: str) -> Node:
    """Draws the number of goals by value of a metric."""
    return draw(_histogram(name, values, lambda value: format_quantity(value, unit), "goal", width=520.0))


def _histogram(name: str, values: Sequence[float], words: Callable[[float], str], what: str, *, width: float) -> Chart:
    """Bars over an axis that is logarithmic if the values span a decade."""
    is_log = min(values) > 0 and max(values) > _DECADE * min(values)
    scaled = np.log10(values) if is_log else np.asarray(values, dtype=np.float64)
    low, high = float(scaled.min()), float(scaled.max())
    low, high = (low, high) if high > low else (low - 0.05 * abs(low) - 0.5, high + 0.05 * abs(high) + 0.5)
    bins = min(_MOST_BINS, max(6, len(values) // 3))
    counts, edges = np.histogram(scaled, bins=bins, range=(low, high))
    bounds = [words(10**edge if is_log else edge) for edge in edges.tolist()]
    marks = tuple(
        Mark(left, float(count), f"{begin} to {end}: {counted(int(count), what)}")
        for left, count, begin, end in zip(edges.tolist(), counts.tolist(), bounds, bounds[1:], strict=False)
        if count
    )
    size = (high - low) / bins
    places = {words(10**at if is_log else at): at for at in np.linspace(high, low, _TICKS).tolist()}
    most = int(counts.max())
    return Chart(
        title=f"Distribution of {name}: {counted(len(values), what)}",
        x=Axis(low=low - size / 2, high=high + size / 2, ticks=tuple((at, word) for word, at in places.items())),
        y=Axis(
            low=0.0,
            high=most * 1.08,
            ticks=None if most > _TICKS else tuple((float(each), str(each)) for each in range(most + 1)),
            title=f"{what}s",
        ),
        series=(Series(kind="bar", marks=marks, colour="s0", shape=Shape.BAR, size=size),),
        width=width,
        height=180.0,
    )


_MARGIN = 6.0
_HEAD = 7.0


def draw_graph(graph: Graph) -> Node:
    """Draws processes around their nodes, topics between them, and message flow as arrows, or says why not."""
    try:
        layout = lay_out(graph)
    except Unavailable as error:
        return h.p(".doubt")[untrusted_text(error.summary)]
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    box = {"viewBox": f"{-_MARGIN:g} {-_MARGIN:g} {place(width)} {place(height)}"}
    title = (
        f"Graph of {len(graph.boxes)} nodes and topics, {len(graph.arrows)} connections; the table below has all of it"
    )
    drawing = h.svg(box, class_="flow", width=place(width), height=place(height), role="img", aria_label=title)[
        (_process(graph.processes[number], where) for number, where in layout.processes.items()),
        (_arrow(each, way) for each, way in zip(graph.arrows, layout.ways, strict=True)),
        (_box(each, where) for each, where in zip(graph.boxes, layout.boxes, strict=True)),
    ]
    return h.div(".scroll", role="region", aria_label="Graph of nodes and topics", tabindex="0")[drawing]


def _process(name: str, where: Rectangle) -> Node:
    return h.g(class_="process")[
        _rectangle(where, 6), _words(where.x + 8, where.y + 15, one_line(name), kind="muted small")
    ]


def _box(box: Box, where: Rectangle) -> Node:
    kind = "node" if box.process is not None else "topic"
    kinds = [kind, *(["silent"] if box.is_silent else []), *(["on-path"] if box.is_on_path else [])]
    middle, first = where.x + where.width / 2, where.y + where.height / 2 - 7.5 * (len(box.lines) - 1) + 4
    lines = [
        _words(middle, first + 15 * number, line, anchor="middle", kind="small muted" if number else "")
        for number, line in enumerate(box.lines)
    ]
    return h.g(class_=" ".join(kinds))[h.title[box.tip], _rectangle(where, 3 if kind == "node" else 12), lines]


def _arrow(arrow: Arrow, way: Way) -> Node:
    kinds = f"arrow {arrow.state}{' on-path' if arrow.is_on_path else ''}"
    x, y = way.label or way.tip
    first = y + 9 - arrow.size[1] / 2
    label = [
        _words(x, first + SMALL_LINE * number, line, anchor="middle", kind="label")
        for number, line in enumerate(arrow.label)
    ]
    return h.g(class_=kinds)[
        h.title[arrow.tip], h.path(d=" ".join(_curve(way)), class_="way"), h.path(d=_triangle(way), class_="tip"), label
    ]


def _curve(way: Way) -> Iterator[str]:
    first, *others = way.points
    yield f"M{place(first[0])} {place(first[1])}"
    yield f"C{' '.join(f'{place(x)} {place(y)}' for x, y in others)}"


def _triangle(way: Way) -> str:
    end, (x, y) = way.points[-1], way.tip
    angle = math.atan2(y - end[1], x - end[0])
    corners = [way.tip, *(_at_angle((x, y), angle + side) for side in (math.pi - 0.4, math.pi + 0.4))]
    return f"M{'L'.join(f'{place(each[0])} {place(each[1])}' for each in corners)}Z"


def _at_angle(point: Point, angle: float) -> Point:
    return point[0] + _HEAD * math.cos(angle), point[1] + _HEAD * math.sin(angle)


def _rectangle(where: Rectangle, corner: float) -> Node:
    places = {name: place(getattr(where, name)) for name in ("x", "y", "width", "height")}
    return h.rect(places, rx=place(corner))


def _words(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "") -> Node:
    return h.text({"text-anchor": anchor}, x=place(x), y=place(y), class_=kind or None)[text]


def show_goals(goals: Measured, metrics: Sequence[Metric]) -> Iterator[Section]:
    """The section of goals; none without goals."""
    trials = [each.trial for each in goals.values() if each.trial is not None]
    if trials:
        note = Text(f"{counted(len(trials), 'goal')}; the table below has each, and leads to its slice of the timeline")
        yield Section("Goals, phase by phase", (*_waterfalls(trials), note, *_metrics(goals, metrics)))


def _waterfalls(trials: Sequence[TrialSpan]) -> Iterator[Block]:
    whole = sorted((each for each in map(_phases, trials) if len(each.parts) > 1), key=lambda each: each.duration_ns)
    if len(whole) > 1:
        median, worst = whole[(len(whole) - 1) // 2], whole[-1]
        yield from show_waterfalls(
            Waterfall(f"median goal, {median.title}", median.parts),
            Waterfall(f"slowest goal, {worst.title}", worst.parts),
        )


def _phases(trial: TrialSpan) -> Waterfall:
    entered = sorted((at, phase.value) for phase, at in trial.phases.items())
    parts = tuple(Part(f"{one} to {other}", end - begin) for (begin, one), (end, other) in pairwise(entered))
    return Waterfall(f"{trial.scenario} {trial.index + 1}" if trial.marked else trial.goal_id, parts)


def _metrics(goals: Measured, metrics: Sequence[Metric]) -> Iterator[Block]:
    for metric in metrics:
        values = [value for each in goals.values() if (value := _value(each, metric)) is not None]
        if len(values) > 1:
            yield _distribution(metric, values)


def _value(measured: TrialMetrics, metric: Metric) -> float | None:
    return measured.measurements[metric.name].number


def _distribution(metric: Metric, values: Sequence[float]) -> Figure:
    ordered = sorted(values)
    extremes = ", ".join(
        f"{what} {format_quantity(value, metric.unit)}"
        for what, value in (
            ("median", ordered[(len(ordered) - 1) // 2]),
            ("worst", ordered[-1 if metric.better == "lower" else 0]),
        )
    )
    return Figure(
        title=f"{metric.name} {metric.title}: {extremes}",
        drawings=(Drawing(lambda: draw_values(f"{metric.name} of goals", values, metric.unit)),),
    )
