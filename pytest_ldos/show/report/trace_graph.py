"""The graph of nodes and topics: boxes and arrows, laid out in layers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import htpy as h
import polars as pl
from htpy import Node

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.text import format_duration, one_line
from pytest_ldos.show.page.html import untrusted_text
from pytest_ldos.show.report.svg import box, place, words
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import UNKNOWN
from pytest_ldos.trace.flow.timeliness import Role

MOST_CONNECTIONS: Final = 250  # most connections in a drawing; those with the most messages
OF_EVERY_NODE: Final = frozenset({"/rosout", "/parameter_events"})
"""Topics of every node, which would clutter the graph."""

_LETTERS: Final = 40
_LETTER: Final = 6.6
SMALL_LETTER: Final = 5.8
_ROOM: Final = 16.0
_LINE: Final = 15.0
SMALL_LINE: Final = 12.0


class State(StrEnum):
    """State of a connection, the worst that applies; also a class in the style sheet."""

    FINE = "fine"
    SILENT = "silent"
    LATE = "late"
    LOST = "lost"


@dataclass(frozen=True)
class Box:
    """A node, or a topic if it has no process, with words cut for the drawing, and all of them in a tooltip."""

    lines: tuple[str, ...]
    tip: str
    process: int | None = None
    is_silent: bool = False
    is_on_path: bool = False

    @property
    def size(self) -> tuple[float, float]:
        return max(map(len, self.lines)) * _LETTER + _ROOM, len(self.lines) * _LINE + _ROOM / 2


@dataclass(frozen=True)
class Arrow:
    """A connection between a node and a topic, as indices of boxes; `size` is that of its label [px]."""

    tail: int
    head: int
    label: tuple[str, ...]
    tip: str
    state: State
    is_on_path: bool = False

    @property
    def size(self) -> tuple[float, float]:
        return max(map(len, self.label), default=0) * SMALL_LETTER + 4, len(self.label) * SMALL_LINE


@dataclass(frozen=True)
class Graph:
    """Boxes and arrows of a trace, names of processes, and sentences on what is not drawn."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    processes: Mapping[int, str]
    left_out: tuple[str, ...] = ()


def build_graph(model: ExecutionModel, connections: pl.DataFrame, on_paths: pl.DataFrame) -> Graph:
    """Boxes and arrows of `summarize_connections`; `on_paths` has those of declared paths (`connections_on`)."""
    usual = connections.filter(pl.col("topic").is_in(list(OF_EVERY_NODE)))
    others = connections.filter(~pl.col("topic").is_in(list(OF_EVERY_NODE)))
    drawn = others.sort("messages", descending=True, maintain_order=True).head(MOST_CONNECTIONS)
    left_out = []
    if len(usual):
        left_out.append(f"the table has {len(usual)} more connections, of {' and '.join(sorted(OF_EVERY_NODE))}")
    if len(others) > len(drawn):
        left_out.append(f"{len(others) - len(drawn)} connections with fewer messages are in the table alone")
    return _Builder(model, on_paths).build(drawn, tuple(left_out))


class _Builder:
    def __init__(self, model: ExecutionModel, on_paths: pl.DataFrame) -> None:
        self._names = dict(model.nodes.select("id", "name").iter_rows())
        self._process_of = dict(model.nodes.select("id", "process").iter_rows())
        hosts = dict(model.hosts.select("id", "name").iter_rows()) if len(model.hosts) > 1 else {}
        of_host = {number: f" on {name}" for number, name in hosts.items() if name is not None}
        self._processes = {
            row["id"]: cut(f"{row['name']} ({row['pid']}){of_host.get(row['host'], '')}")
            for row in model.processes.iter_rows(named=True)
        }
        self._on_paths = set(on_paths.select("node", "topic", "role").iter_rows())

    def build(self, connections: pl.DataFrame, left_out: tuple[str, ...]) -> Graph:
        rows = list(connections.iter_rows(named=True))
        on_path = [(row["node"], row["topic"], row["role"]) in self._on_paths for row in rows]
        nodes = list(dict.fromkeys(row["node"] for row in rows))
        topics = list(dict.fromkeys(row["topic"] for row in rows))
        of_nodes = {row["node"] for row, is_on in zip(rows, on_path, strict=True) if is_on}
        of_topics = {row["topic"] for row, is_on in zip(rows, on_path, strict=True) if is_on}
        boxes = [self._node(node, is_on_path=node in of_nodes) for node in nodes]
        boxes += [self._topic(topic, rows, is_on_path=topic in of_topics) for topic in topics]
        numbers = {("node", node): number for number, node in enumerate(nodes)}
        numbers |= {("topic", topic): len(nodes) + number for number, topic in enumerate(topics)}
        arrows = [
            self._arrow(row, numbers["node", row["node"]], numbers["topic", row["topic"]], is_on_path=is_on)
            for row, is_on in zip(rows, on_path, strict=True)
        ]
        used = {box.process for box in boxes}
        processes = {number: name for number, name in self._processes.items() if number in used}
        return Graph(tuple(boxes), tuple(arrows), processes, left_out)

    def _node(self, node: int | None, *, is_on_path: bool) -> Box:
        name = self._name(node)
        process = None if node is None else self._process_of.get(node)
        return Box((cut(name),), name, -1 if process is None else process, is_on_path=is_on_path)

    def _name(self, node: int | None) -> str:
        return one_line((None if node is None else self._names.get(node)) or UNKNOWN)

    def _topic(self, topic: str, rows: Sequence[Mapping[str, Any]], *, is_on_path: bool) -> Box:
        sent = [row for row in rows if row["topic"] == topic and row["role"] == Role.PUBLISHES]
        rates = [row["rate_hz"] for row in sent if row["rate_hz"] is not None]
        messages = sum(row["messages"] for row in sent)
        activity = f"{sum(rates):.1f} Hz" if rates else f"{messages} messages" if messages else "silent"
        name = one_line(topic)
        return Box((cut(name), activity), f"{name}: {activity}", is_silent=not messages, is_on_path=is_on_path)

    def _arrow(self, row: Mapping[str, Any], node: int, topic: int, *, is_on_path: bool) -> Arrow:
        label = tuple(_label(row))
        tail, head = (node, topic) if row["role"] == Role.PUBLISHES else (topic, node)
        tip = f"{self._name(row['node'])} {row['role']} {one_line(row['topic'])}: {row['messages']} messages"
        tip = "; ".join((tip, *label))
        return Arrow(tail, head, label, tip, state_of(row), is_on_path)


def _label(row: Mapping[str, Any]) -> Iterator[str]:
    if row["p50_ns"] is not None:
        yield f"{format_duration(row['p50_ns'])}, p99 {format_duration(row['p99_ns'])}"
    if not row["messages"]:
        yield "silent"
    late = (row["late"] or 0) + (row["too_late"] or 0)
    if wrong := [f"{count} {what}" for count, what in ((late, "late"), (row["lost"] or 0, "lost")) if count]:
        yield ", ".join(wrong)


def state_of(row: Mapping[str, Any]) -> State:
    if row["lost"]:
        return State.LOST
    if row["late"] or row["too_late"]:
        return State.LATE
    return State.FINE if row["messages"] else State.SILENT


def cut(name: str) -> str:
    """A name cut for a drawing; its end is kept, because ends differ most."""
    plain = one_line(name)
    return plain if len(plain) <= _LETTERS else f"…{plain[1 - _LETTERS :]}"


Point = tuple[float, float]

_PER_INCH: Final = 72.0


class Rectangle(NamedTuple):
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Way:
    """The curve of an arrow: cubic Bézier points (the first, then three for each), its tip, and its label's middle."""

    points: tuple[Point, ...]
    tip: Point
    label: Point | None


@dataclass(frozen=True)
class Layout:
    """Positions of all parts of a graph, in the order of its boxes and arrows; processes by number."""

    width: float
    height: float
    boxes: tuple[Rectangle, ...]
    ways: tuple[Way, ...]
    processes: Mapping[int, Rectangle]


def lay_out(graph: Graph) -> Layout:
    """Lets messages flow from left to right as far as possible; raises `Unavailable` without pygraphviz."""
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
        members = " ".join(f"b{number};" for number, each in enumerate(graph.boxes) if each.process == process)
        yield f"subgraph cluster_{process} {{ margin=12; label=<{_space(len(name) * SMALL_LETTER, 14)}>; {members} }}"
    for number, each in enumerate(graph.boxes):
        width, height = each.size
        yield f"b{number} [width={width / _PER_INCH:.3f}, height={height / _PER_INCH:.3f}];"
    for number, arrow in enumerate(graph.arrows):
        label = f", label=<{_space(*arrow.size)}>" if arrow.label else ""
        yield f"b{arrow.tail} -> b{arrow.head} [comment={number}{label}];"
    yield "}"


def _space(width: float, height: float) -> str:
    size = f'fixedsize="true" width="{width:.0f}" height="{height:.0f}"'
    return f'<table border="0" cellborder="0" cellpadding="0" cellspacing="0" {size}><tr><td></td></tr></table>'


def _read(found: Mapping[str, Any], graph: Graph) -> Layout:
    """Positions by Graphviz, whose origin is below; a curve begins with the tip of its head, as ``e,X,Y``."""
    left, bottom, right, top = map(float, found["bb"].split(","))

    def at(text: str) -> Point:
        x, y = map(float, text.removeprefix("e,").split(","))
        return x, top - y

    objects = {each["name"]: each for each in found.get("objects", ())}
    boxes: list[Rectangle] = []
    processes: dict[int, Rectangle] = {}
    ways: dict[int, Way] = {}
    for each in (objects[f"b{number}"] for number in range(len(graph.boxes))):
        x, y = at(each["pos"])
        width, height = (float(each[name]) * _PER_INCH for name in ("width", "height"))
        boxes.append(Rectangle(x - width / 2, y - height / 2, width, height))
    for number in graph.processes:
        x, lower, end, upper = map(float, objects[f"cluster_{number}"]["bb"].split(","))
        processes[number] = Rectangle(x, top - upper, end - x, upper - lower)
    for each in found.get("edges", ()):
        tip, *points = map(at, each["pos"].split())
        label = each.get("lp")
        ways[int(each["comment"])] = Way(tuple(points), tip, None if label is None else at(label))
    in_order = tuple(ways[number] for number in range(len(graph.arrows)))
    return Layout(right - left, top - bottom, tuple(boxes), in_order, processes)


_MARGIN = 6.0
_HEAD = 7.0


def draw_graph(graph: Graph) -> Node:
    """Draws processes around their nodes, topics between them, and message flow as arrows, or says why not."""
    try:
        layout = lay_out(graph)
    except Unavailable as error:
        return h.p(".doubt")[untrusted_text(error.summary)]
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    view = {"viewBox": f"{-_MARGIN:g} {-_MARGIN:g} {place(width)} {place(height)}"}
    title = (
        f"Graph of {len(graph.boxes)} nodes and topics, {len(graph.arrows)} connections; the table below has all of it"
    )
    drawing = h.svg(view, class_="flow", width=place(width), height=place(height), role="img", aria_label=title)[
        (
            h.g(class_="process")[
                box(*where, corner="6"),
                words(where.x + 8, where.y + 15, graph.processes[number], anchor="start", kind="muted small"),
            ]
            for number, where in layout.processes.items()
        ),
        (_draw_arrow(each, way) for each, way in zip(graph.arrows, layout.ways, strict=True)),
        (_draw_box(each, where) for each, where in zip(graph.boxes, layout.boxes, strict=True)),
    ]
    return h.div(".scroll", role="region", aria_label="Graph of nodes and topics", tabindex="0")[drawing]


def _draw_box(shown: Box, where: Rectangle) -> Node:
    kind = "node" if shown.process is not None else "topic"
    kinds = [kind, *(["silent"] if shown.is_silent else []), *(["on-path"] if shown.is_on_path else [])]
    middle, first = where.x + where.width / 2, where.y + where.height / 2 - 7.5 * (len(shown.lines) - 1) + 4
    lines = [
        words(middle, first + 15 * number, line, anchor="middle", kind="small muted" if number else None)
        for number, line in enumerate(shown.lines)
    ]
    return h.g(class_=" ".join(kinds))[h.title[shown.tip], box(*where, corner="3" if kind == "node" else "12"), lines]


def _draw_arrow(arrow: Arrow, way: Way) -> Node:
    kinds = f"arrow {arrow.state}{' on-path' if arrow.is_on_path else ''}"
    x, y = way.label or way.tip
    first = y + 9 - arrow.size[1] / 2
    label = [
        words(x, first + SMALL_LINE * number, line, anchor="middle", kind="label")
        for number, line in enumerate(arrow.label)
    ]
    begin, *others = (f"{place(across)} {place(down)}" for across, down in way.points)
    curve = h.path(d=f"M{begin} C{' '.join(others)}", class_="way")
    tip, end = way.tip, way.points[-1]
    angle = math.atan2(tip[1] - end[1], tip[0] - end[0]) + math.pi
    wings = ((tip[0] + _HEAD * math.cos(each), tip[1] + _HEAD * math.sin(each)) for each in (angle - 0.4, angle + 0.4))
    corners = "L".join(f"{place(across)} {place(down)}" for across, down in (tip, *wings))
    return h.g(class_=kinds)[h.title[arrow.tip], curve, h.path(d=f"M{corners}Z", class_="tip"), label]
