"""Layered layout of a graph by Graphviz, which gets numbers and sizes and no word of a trace."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.show.report.trace.graph import SMALL_LETTER, Graph

Point = tuple[float, float]

_PER_INCH: Final = 72.0


@dataclass(frozen=True)
class Rectangle:
    """A place in pixels, from the upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Way:
    """The curve of an arrow.

    Attributes:
        points: of cubic Bézier curves, the first and then three for each.
        tip: point of the arrow's head.
        label: middle of its label; ``None`` without one.
    """

    points: tuple[Point, ...]
    tip: Point
    label: Point | None


@dataclass(frozen=True)
class Layout:
    """Places of all parts of a graph, in the order of its boxes and arrows.

    Attributes:
        processes: by number.
    """

    width: float
    height: float
    boxes: tuple[Rectangle, ...]
    ways: tuple[Way, ...]
    processes: Mapping[int, Rectangle]


def lay_out(graph: Graph) -> Layout:
    """Places for a graph, in which messages flow from left to right as far as they can.

    Raises:
        Unavailable: pygraphviz is not installed.
    """
    try:
        from pygraphviz import AGraph  # noqa: PLC0415 - an extra
    except ImportError:
        raise Unavailable(
            "the drawing of the graph needs the package pygraphviz", remedy="pip install 'pytest-ldos[report]'"
        ) from None
    return _read(json.loads(AGraph(string="\n".join(_to_dot(graph))).draw(format="json0", prog="dot")), graph)


def _to_dot(graph: Graph) -> Iterator[str]:
    yield 'digraph { rankdir=LR; nodesep=0.12; ranksep=0.4; node [shape=box, fixedsize=true, label=""];'
    for process, name in graph.processes.items():
        members = " ".join(f"b{number};" for number, box in enumerate(graph.boxes) if box.process == process)
        yield f"subgraph cluster_{process} {{ margin=12; label=<{_space(len(name) * SMALL_LETTER, 14)}>; {members} }}"
    for number, box in enumerate(graph.boxes):
        width, height = box.size
        yield f"b{number} [width={width / _PER_INCH:.3f}, height={height / _PER_INCH:.3f}];"
    for number, arrow in enumerate(graph.arrows):
        label = f", label=<{_space(*arrow.size)}>" if arrow.label else ""
        yield f"b{arrow.tail} -> b{arrow.head} [comment={number}{label}];"
    yield "}"


def _space(width: float, height: float) -> str:
    """A label of a size, without words."""
    size = f'fixedsize="true" width="{width:.0f}" height="{height:.0f}"'
    return f'<table border="0" cellborder="0" cellpadding="0" cellspacing="0" {size}><tr><td></td></tr></table>'


def _read(found: Mapping[str, Any], graph: Graph) -> Layout:
    left, bottom, right, top = _numbers(found["bb"])
    objects = {each["name"]: each for each in found.get("objects", ())}
    ways = {int(each["comment"]): _way(each, top) for each in found.get("edges", ())}
    return Layout(
        width=right - left,
        height=top - bottom,
        boxes=tuple(_box(objects[f"b{number}"], top) for number in range(len(graph.boxes))),
        ways=tuple(ways[number] for number in range(len(graph.arrows))),
        processes={number: _frame(objects[f"cluster_{number}"], top) for number in graph.processes},
    )


def _numbers(text: str) -> Sequence[float]:
    return [float(each) for each in text.split(",")]


def _point(text: str, top: float) -> Point:
    x, y = _numbers(text)
    return x, top - y


def _box(found: Mapping[str, Any], top: float) -> Rectangle:
    x, y = _point(found["pos"], top)
    width, height = (float(found[name]) * _PER_INCH for name in ("width", "height"))
    return Rectangle(x - width / 2, y - height / 2, width, height)


def _frame(found: Mapping[str, Any], top: float) -> Rectangle:
    left, bottom, right, upper = _numbers(found["bb"])
    return Rectangle(left, top - upper, right - left, upper - bottom)


def _way(found: Mapping[str, Any], top: float) -> Way:
    """A curve: its points, with the tip of the head before them as ``e,X,Y``."""
    head, *others = found["pos"].split()
    label = found.get("lp")
    points = tuple(_point(each, top) for each in others)
    return Way(points, _point(head.removeprefix("e,"), top), None if label is None else _point(label, top))
