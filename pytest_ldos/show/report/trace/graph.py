"""The graph of nodes and topics: boxes and arrows, laid out in layers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import polars as pl

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.text import format_duration, one_line
from pytest_ldos.trace.execution.model import ExecutionModel
from pytest_ldos.trace.flow.graph import UNKNOWN
from pytest_ldos.trace.flow.lineage import Role

MOST_CONNECTIONS: Final = 250
"""Most connections in a drawing; those with the most messages."""

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
    """A node or topic.

    Attributes:
        lines: its words, cut for the drawing.
        tip: tooltip with all of its words.
        process: index of its process; ``None`` for topics.
    """

    lines: tuple[str, ...]
    tip: str
    process: int | None = None
    is_silent: bool = False
    is_on_path: bool = False

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in pixels."""
        longest = max(map(len, self.lines))
        return longest * _LETTER + _ROOM, len(self.lines) * _LINE + _ROOM / 2


@dataclass(frozen=True)
class Arrow:
    """A connection between a node and a topic, as indices of boxes."""

    tail: int
    head: int
    label: tuple[str, ...]
    tip: str
    state: State
    is_on_path: bool = False

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the label in pixels."""
        return max(map(len, self.label), default=0) * SMALL_LETTER + 4, len(self.label) * SMALL_LINE


@dataclass(frozen=True)
class Graph:
    """Boxes and arrows of a trace.

    Attributes:
        processes: names.
        left_out: sentences on what is not drawn.
    """

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    processes: Mapping[int, str]
    left_out: tuple[str, ...] = field(default=())


def build_graph(model: ExecutionModel, connections: pl.DataFrame, on_paths: pl.DataFrame) -> Graph:
    """Boxes and arrows of connections.

    Args:
        connections: result of `summarize_connections`.
        on_paths: result of `connections_on` for all declared paths.
    """
    usual = connections.filter(pl.col("topic").is_in(list(OF_EVERY_NODE)))
    others = connections.filter(~pl.col("topic").is_in(list(OF_EVERY_NODE)))
    drawn = others.sort("messages", descending=True, maintain_order=True).head(MOST_CONNECTIONS)
    return _Builder(model, on_paths).build(drawn, tuple(_describe_left_out(len(usual), len(others) - len(drawn))))


def _describe_left_out(usual: int, more: int) -> Iterator[str]:
    if usual:
        yield f"the table has {usual} more connections, of {' and '.join(sorted(OF_EVERY_NODE))}"
    if more:
        yield f"{more} connections with fewer messages are in the table alone"


class _Builder:
    def __init__(self, model: ExecutionModel, on_paths: pl.DataFrame) -> None:
        self._names = dict(model.nodes.select("id", "name").iter_rows())
        self._process_of = dict(model.nodes.select("id", "process").iter_rows())
        hosts = dict(model.hosts.select("id", "name").iter_rows()) if len(model.hosts) > 1 else {}
        self._processes = {
            row["id"]: cut(f"{row['name']} ({row['pid']}){_of_host(hosts.get(row['host']))}")
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
        sends = row["role"] == Role.PUBLISHES
        tail, head = (node, topic) if sends else (topic, node)
        tip = f"{self._name(row['node'])} {row['role']} {one_line(row['topic'])}: {row['messages']} messages"
        tip = "; ".join((tip, *label))
        return Arrow(tail, head, label, tip, state_of(row), is_on_path)


def _of_host(name: str | None) -> str:
    return "" if name is None else f" on {name}"


def _label(row: Mapping[str, Any]) -> Iterator[str]:
    """Label of a connection: its latency at a subscription, and problems."""
    if row["p50_ns"] is not None:
        yield f"{format_duration(row['p50_ns'])}, p99 {format_duration(row['p99_ns'])}"
    if not row["messages"]:
        yield "silent"
    late = (row["late"] or 0) + (row["too_late"] or 0)
    wrong = [f"{count} {what}" for count, what in ((late, "late"), (row["lost"] or 0, "lost")) if count]
    if wrong:
        yield ", ".join(wrong)


def state_of(row: Mapping[str, Any]) -> State:
    """State of a row of `summarize_connections`."""
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


@dataclass(frozen=True)
class Rectangle:
    """A rectangle in pixels, from the upper left corner."""

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
    """Positions of all parts of a graph, in the order of its boxes and arrows.

    Attributes:
        processes: by number.
    """

    width: float
    height: float
    boxes: tuple[Rectangle, ...]
    ways: tuple[Way, ...]
    processes: Mapping[int, Rectangle]


def lay_out(graph: Graph) -> Layout:
    """Lays out a graph so that messages flow from left to right as far as possible.

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
    """An empty label of a given size."""
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
    """Parses a curve: its points, preceded by the tip of the head as ``e,X,Y``."""
    head, *others = found["pos"].split()
    label = found.get("lp")
    points = tuple(_point(each, top) for each in others)
    return Way(points, _point(head.removeprefix("e,"), top), None if label is None else _point(label, top))
