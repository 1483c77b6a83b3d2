"""The graph of nodes and topics as SVG, to be read without scripts."""

from __future__ import annotations

import math
from collections.abc import Iterator

import htpy as h
from htpy import Node

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.text import one_line
from pytest_ldos.show.page.html_parts import said
from pytest_ldos.show.report.html.drawing import place
from pytest_ldos.show.report.trace.graph import SMALL_LINE, Arrow, Box, Graph
from pytest_ldos.show.report.trace.layout import Point, Rectangle, Way, lay_out

_MARGIN = 6.0
_HEAD = 7.0


def draw_graph(graph: Graph) -> Node:
    """Processes around their nodes, topics between them, arrows as messages flow; else why it cannot be drawn."""
    try:
        layout = lay_out(graph)
    except Unavailable as error:
        return h.p(".doubt")[said(error.summary)]
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
    corners = [way.tip, *(_beside((x, y), angle + side) for side in (math.pi - 0.4, math.pi + 0.4))]
    return f"M{'L'.join(f'{place(each[0])} {place(each[1])}' for each in corners)}Z"


def _beside(point: Point, angle: float) -> Point:
    return point[0] + _HEAD * math.cos(angle), point[1] + _HEAD * math.sin(angle)


def _rectangle(where: Rectangle, corner: float) -> Node:
    places = {name: place(getattr(where, name)) for name in ("x", "y", "width", "height")}
    return h.rect(places, rx=place(corner))


def _words(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "") -> Node:
    return h.text({"text-anchor": anchor}, x=place(x), y=place(y), class_=kind or None)[text]
