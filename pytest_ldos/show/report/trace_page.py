"""The page of a trace, with drawings of its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import count, pairwise
from typing import Final

import htpy as h
import numpy as np
import polars as pl
from htpy import Node

from pytest_ldos.base.text import counted, format_duration, format_quantity, one_line, percent
from pytest_ldos.measure.metrics.extract import kind_of
from pytest_ldos.measure.metrics.model import Metric
from pytest_ldos.show.page import model as page
from pytest_ldos.show.page.html import link
from pytest_ldos.show.report.analysis import Analysis, Measured, tabulate_goals
from pytest_ldos.show.report.chart import Axis, Chart, Mark, Series, Shape, cut
from pytest_ldos.show.report.svg import box, draw, line, place, words
from pytest_ldos.show.report.trace_against import (
    Part,
    PathPassages,
    Waterfall,
    find_passages,
    show_passages,
    show_waterfalls,
)
from pytest_ldos.show.report.trace_graph import OF_EVERY_NODE, build_graph, draw_graph
from pytest_ldos.show.report.trace_timeline import anchor_of, build_timeline, describe_timeline, draw_timeline
from pytest_ldos.trace.ctf.stats import describe_incomplete
from pytest_ldos.trace.execution.model import TrialSpan
from pytest_ldos.trace.flow.critical import SegmentKind
from pytest_ldos.trace.flow.graph import Names
from pytest_ldos.trace.flow.timeliness import connections_on, summarize_connections

_WIDTH: Final = 800.0
_WORDS: Final = 310.0  # width of the names of parts [px]
_ROW: Final = 20.0
_BAR: Final = 11.0
_LETTERS: Final = 50
_BOLD_LETTERS: Final = 42
_LETTER: Final = 6.8  # width of a letter, rounded up [px]
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
    """Draws waterfalls one below the other; the width is `scale_ns`, or by default each passage's own."""
    longest = max((len(_label(part)) for each in shown for part in each.parts), default=0)
    room = _WIDTH - _WORDS - 2 * _GAP - longest * _LETTER
    return h.div[[_draw(each, room / max(scale_ns, each.duration_ns, 1)) for each in shown]]


def _draw(shown: Waterfall, scale: float) -> Node:
    height = _ROW * (len(shown.parts) + 1) + 4
    title = f"{shown.title}: {format_duration(shown.duration_ns if shown.whole_ns is None else shown.whole_ns)}"
    drawing = h.svg({"viewBox": f"0 0 {place(_WIDTH)} {place(height)}"}, class_="plot waterfall", role="img")[
        h.title[one_line(title)],
        words(0, 13, title, kind="strong"),
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
        kind = kind_of(name if ": " in name else f"{name}: ")
        colour = "plain" if kind is None or (has_marked and not part.is_marked) else _COLOURS.get(kind, "plain")
        yield h.g(class_=f"part {colour}{' marked' if part.is_marked else ''}")[
            h.title[f"{name}: {label}"],
            line(_WORDS, y + _ROW - 2, _WIDTH, y + _ROW - 2, "grid"),
            words(0, y + 13, cut(name, _BOLD_LETTERS if part.is_marked else _LETTERS), kind="name"),
            box(x, y + 4, width, _BAR, "bar"),
            words(x + width + _GAP, y + 13, label),
        ]


def _label(part: Part) -> str:
    return ", ".join(filter(None, (format_duration(part.duration_ns), one_line(part.note))))


_MOST_BINS: Final = 30
_DECADE: Final = 10.0
_TICKS: Final = 5


def draw_latencies(name: str, latencies_ns: Sequence[int]) -> Node:
    latencies = [max(float(each), 1.0) for each in latencies_ns]
    return draw(_histogram(name, latencies, format_duration, "passage", width=760.0))


def draw_values(name: str, values: Sequence[float], unit: str) -> Node:
    return draw(_histogram(name, values, lambda value: format_quantity(value, unit), "goal", width=520.0))


def _histogram(name: str, values: Sequence[float], show: Callable[[float], str], what: str, *, width: float) -> Chart:
    """Bars over an axis that is logarithmic if the values span a decade."""
    is_log = min(values) > 0 and max(values) > _DECADE * min(values)
    scaled = np.log10(values) if is_log else np.asarray(values, dtype=np.float64)
    low, high = float(scaled.min()), float(scaled.max())
    low, high = (low, high) if high > low else (low - 0.05 * abs(low) - 0.5, high + 0.05 * abs(high) + 0.5)
    bins = min(_MOST_BINS, max(6, len(values) // 3))
    counts, edges = np.histogram(scaled, bins=bins, range=(low, high))
    bounds = [show(10**edge if is_log else edge) for edge in edges.tolist()]
    marks = tuple(
        Mark(left, float(count), f"{begin} to {end}: {counted(int(count), what)}")
        for left, count, begin, end in zip(edges.tolist(), counts.tolist(), bounds, bounds[1:], strict=False)
        if count
    )
    size = (high - low) / bins
    places = {show(10**at if is_log else at): at for at in np.linspace(high, low, _TICKS).tolist()}
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


def show_goals(goals: Measured, metrics: Sequence[Metric]) -> Iterator[page.Section]:
    if trials := [each.trial for each in goals.values() if each.trial is not None]:
        note = f"{counted(len(trials), 'goal')}; the table below has each, and leads to its slice of the timeline"
        yield page.Section("Goals, phase by phase", (*_waterfalls(trials), page.Text(note), *_metrics(goals, metrics)))


def _waterfalls(trials: Sequence[TrialSpan]) -> Iterator[page.Block]:
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


def _metrics(goals: Measured, metrics: Sequence[Metric]) -> Iterator[page.Block]:
    for metric in metrics:
        numbers = (each.measurements[metric.name].number for each in goals.values())
        values = [number for number in numbers if number is not None]
        if len(values) > 1:
            yield _distribution(metric, values)


def _distribution(metric: Metric, values: Sequence[float]) -> page.Figure:
    ordered = sorted(values)
    median = format_quantity(ordered[(len(ordered) - 1) // 2], metric.unit)
    worst = format_quantity(ordered[-1 if metric.better == "lower" else 0], metric.unit)
    return page.Figure(
        title=f"{metric.name} {metric.title}: median {median}, worst {worst}",
        drawings=(page.Drawing(lambda: draw_values(f"{metric.name} of goals", values, metric.unit)),),
    )


_MOST_FINDINGS: Final = 4


def compose_drawn(analysis: Analysis, plain: page.Page) -> page.Page:
    """The plain page with drawings before its tables; goals in the tables link to their slices."""
    passages = find_passages(analysis.flow, analysis.paths, analysis.thread_states)
    tables = [
        _with_links(each) if isinstance(each, page.Section) and each.title == "goals" else each for each in plain.blocks
    ]
    return replace(
        plain,
        title=f"Trace {analysis.name}",
        answer=plain.title,
        badge=page.Badge("incomplete", page.Tone.BAD) if describe_incomplete(analysis.flow.model.stats) else None,
        is_interactive=True,
        blocks=(
            page.Section("Flow of messages", tuple(_graph(analysis, passages))),
            *(show_passages(each) for each in passages),
            *show_goals(analysis.goals, analysis.metrics),
            page.Section("Timeline", tuple(_timeline(analysis))),
            page.Section("Tables", tuple(tables)),
            page.Section("How to read this", (page.Legend(_MEANINGS),)),
        ),
        made=f"pytest-ldos {version('pytest-ldos')}",
    )


def _graph(analysis: Analysis, passages: Sequence[PathPassages]) -> Iterator[page.Block]:
    flow = analysis.flow
    connections = summarize_connections(flow)
    on_paths = [connections_on(flow, each.instances) for each in passages]
    empty = connections.head(0).select("node", "topic", "role")
    graph = build_graph(flow.model, connections, pl.concat([empty, *on_paths]))
    yield page.Bullets(tuple(_findings(analysis, connections)), page.Tone.DOUBT)
    if graph.boxes:
        yield page.Drawing(lambda: draw_graph(graph))
    yield from (page.Text(each, page.Tone.QUIET) for each in graph.left_out)
    yield page.Folded("connections as a table", (_connections(analysis, connections),))


def _findings(analysis: Analysis, connections: pl.DataFrame) -> Iterator[str]:
    """Sentences about lost and late messages and silent topics, the worst first."""
    if describe_incomplete(analysis.flow.model.stats):
        yield "parts of the trace are missing: rates, losses and lateness are of the time that is whole"
    own = connections.filter(~pl.col("topic").is_in(list(OF_EVERY_NODE)))
    late = pl.col("late").fill_null(0) + pl.col("too_late").fill_null(0)
    own = own.with_columns(late=late, lost=pl.col("lost").fill_null(0))
    for column, what in (("lost", "were lost"), ("late", "came late")):
        yield from _of_topics(own.filter(pl.col(column) > 0), column, what)
    sent = own.group_by("topic", maintain_order=True).agg(pl.col("messages").sum(), pl.col("role").n_unique())
    if silent := sent.filter((pl.col("messages") == 0) & (pl.col("role") > 1))["topic"].to_list():
        yield f"silent, though published and subscribed to: {', '.join(silent)}"


def _of_topics(found: pl.DataFrame, column: str, what: str) -> Iterator[str]:
    topics = found.group_by("topic", maintain_order=True).agg(pl.col(column, "messages").sum(), nodes=pl.len())
    ordered = topics.sort(column, descending=True, maintain_order=True)
    for topic, wrong, messages, nodes in ordered.head(_MOST_FINDINGS).iter_rows():
        share = percent(wrong / max(messages + (wrong if column == "lost" else 0), 1))
        yield f"{topic}: {counted(wrong, 'message')} ({share}) {what} on the way to {counted(nodes, 'node')}"
    if len(ordered) > _MOST_FINDINGS:
        yield f"{counted(len(ordered) - _MOST_FINDINGS, 'more topic')} on which messages {what}: see the table"


def _connections(analysis: Analysis, connections: pl.DataFrame) -> page.Table:
    of_nodes = Names(analysis.flow.model, with_processes=True)
    titles = ("messages", "Hz", "p50", "p99", "late", "too late", "lost")
    columns = (*page.names("topic", "node"), *page.words("role"), *page.numbers(*titles))
    rows = tuple(
        (
            row["topic"],
            of_nodes.node(row["node"]),
            row["role"],
            _amount(row["messages"]),
            _amount(row["rate_hz"], f"{row['rate_hz'] or 0:.1f}"),
            *(_amount(row[each], format_duration(row[each] or 0)) for each in ("p50_ns", "p99_ns")),
            *(_amount(row[each]) for each in ("late", "too_late", "lost")),
        )
        for row in connections.iter_rows(named=True)
    )
    return page.Table(title="Connections of nodes and topics", columns=columns, rows=rows, key=2)


def _amount(value: float | None, text: str = "") -> page.Cell:
    return page.ABSENT if value is None else page.Amount(text or str(value), value=float(value))


def _timeline(analysis: Analysis) -> Iterator[page.Block]:
    names = tabulate_goals(analysis.goals, ())["goal"].to_list() if analysis.goals else []
    timeline = build_timeline(analysis.flow, analysis.goals, names, analysis.thread_states)
    yield from (page.Text(each, page.Tone.QUIET) for each in describe_timeline(timeline))
    if timeline.tracks:
        yield page.Drawing(lambda: draw_timeline(timeline))


def _with_links(section: page.Section) -> page.Section:
    """The table of goals; those on the timeline link to their slices."""
    numbers = count()

    def linked(cell: page.Cell) -> page.Cell:
        if not isinstance(cell, str) or cell == page.ABSENT:
            return cell
        anchor = anchor_of(next(numbers))
        return page.Drawing(lambda: link(f"#{anchor}", cell))

    table, *others = section.blocks
    assert isinstance(table, page.Table)
    rows = tuple((linked(row[0]), *row[1:]) for row in table.rows)
    return replace(section, blocks=(replace(table, rows=rows), *others))


_MEANINGS: Final = (
    ("box", "a process around its nodes; topics are round, between nodes"),
    ("arrow", "from a node to a topic it publishes, and from there to a node that receives: median latency, p99"),
    ("blue, thick", "a declared path"),
    ("dashed", "silent: no message in this trace"),
    ("late", "more than 20 % of the topic's period, or 5 ms, from publication to reception; – without a period"),
    ("lost", "never received by a subscription that received later ones"),
    (
        "timeline",
        "of each thread, from above: publications, callback runs, the executor's state, waits for a CPU in red",
    ),
    ("click", "on a publication or goal: what it came from and led to, in timeline, graph and table of connections"),
    ("executor", "it waits for work, collects what is ready and takes it, or executes: callbacks, services, actions"),
)
