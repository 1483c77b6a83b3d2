"""The page of a trace, with drawings of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import count
from typing import Final

import htpy as h
import polars as pl

from pytest_ldos.base.text import counted, format_duration
from pytest_ldos.show.page.html import untrusted_text
from pytest_ldos.show.page.model import (
    ABSENT,
    Amount,
    Badge,
    Block,
    Bullets,
    Cell,
    Column,
    Drawing,
    Folded,
    Kind,
    Legend,
    Page,
    Section,
    Table,
    Text,
    Tone,
)
from pytest_ldos.show.report.analysis import Analysis, tabulate_goals
from pytest_ldos.show.report.trace.drawings import draw_graph, show_goals
from pytest_ldos.show.report.trace.graph import OF_EVERY_NODE, build_graph
from pytest_ldos.show.report.trace.passages import PathPassages, find_passages, show_passages
from pytest_ldos.show.report.trace.timeline import build_timeline
from pytest_ldos.show.report.trace.timeline_drawing import anchor_of, describe_timeline, draw_timeline
from pytest_ldos.show.report.words import percent
from pytest_ldos.trace.ctf.stats import describe_incomplete
from pytest_ldos.trace.flow.graph import Names
from pytest_ldos.trace.flow.lineage import connections_on, summarize_connections

_GOALS: Final = "goals"
_MOST_FINDINGS: Final = 4


def compose_drawn(analysis: Analysis, plain: Page) -> Page:
    """The plain page with drawings before its tables; goals in the tables link to their slices."""
    passages = find_passages(analysis.flow, analysis.paths, analysis.thread_states)
    tables = [_with_links(each) if _is_goals(each) else each for each in plain.blocks]
    return replace(
        plain,
        title=f"Trace {analysis.name}",
        answer=plain.title,
        badge=Badge("incomplete", Tone.BAD) if describe_incomplete(analysis.flow.model.stats) else None,
        is_interactive=True,
        blocks=(
            Section("Flow of messages", tuple(_graph(analysis, passages))),
            *(show_passages(each) for each in passages),
            *show_goals(analysis.goals, analysis.metrics),
            Section("Timeline", tuple(_timeline(analysis))),
            Section("Tables", tuple(tables)),
            Section("How to read this", (Legend(_MEANINGS),)),
        ),
        made=f"pytest-ldos {version('pytest-ldos')}",
    )


def _graph(analysis: Analysis, passages: Sequence[PathPassages]) -> Iterator[Block]:
    flow = analysis.flow
    connections = summarize_connections(flow)
    on_paths = [connections_on(flow, each.instances) for each in passages]
    empty = connections.head(0).select("node", "topic", "role")
    graph = build_graph(flow.model, connections, pl.concat([empty, *on_paths]))
    yield Bullets(tuple(_findings(analysis, connections)), Tone.DOUBT)
    if graph.boxes:
        yield Drawing(lambda: draw_graph(graph))
    yield from (Text(each, Tone.QUIET) for each in graph.left_out)
    yield Folded("connections as a table", (_connections(analysis, connections),))


def _findings(analysis: Analysis, connections: pl.DataFrame) -> Iterator[str]:
    """Sentences about lost and late messages and silent topics, the worst first."""
    if describe_incomplete(analysis.flow.model.stats):
        yield "parts of the trace are missing: rates, losses and lateness are of the time that is whole"
    own = connections.filter(~pl.col("topic").is_in(list(OF_EVERY_NODE)))
    late = pl.col("late").fill_null(0) + pl.col("too_late").fill_null(0)
    own = own.with_columns(late=late, lost=pl.col("lost").fill_null(0))
    for column, words in (("lost", "were lost"), ("late", "came late")):
        yield from _of_topics(own.filter(pl.col(column) > 0), column, words)
    sent = own.group_by("topic", maintain_order=True).agg(pl.col("messages").sum(), pl.col("role").n_unique())
    silent = sent.filter((pl.col("messages") == 0) & (pl.col("role") > 1))["topic"].to_list()
    if silent:
        yield f"silent, though published and subscribed to: {', '.join(silent)}"


def _of_topics(found: pl.DataFrame, column: str, words: str) -> Iterator[str]:
    topics = found.group_by("topic", maintain_order=True).agg(pl.col(column, "messages").sum(), nodes=pl.len())
    ordered = topics.sort(column, descending=True, maintain_order=True)
    for topic, wrong, messages, nodes in ordered.head(_MOST_FINDINGS).iter_rows():
        share = percent(wrong / max(messages + (wrong if column == "lost" else 0), 1))
        yield f"{topic}: {counted(wrong, 'message')} ({share}) {words} on the way to {counted(nodes, 'node')}"
    if len(ordered) > _MOST_FINDINGS:
        yield f"{counted(len(ordered) - _MOST_FINDINGS, 'more topic')} on which messages {words}: see the table"


def _connections(analysis: Analysis, connections: pl.DataFrame) -> Table:
    names = Names(analysis.flow.model, with_processes=True)
    titles = ("messages", "Hz", "p50", "p99", "late", "too late", "lost")
    columns = (Column("topic", Kind.NAME), Column("node", Kind.NAME), Column("role", Kind.WORD), *map(Column, titles))
    rows = tuple(
        (
            row["topic"],
            names.node(row["node"]),
            row["role"],
            _amount(row["messages"]),
            _amount(row["rate_hz"], f"{row['rate_hz'] or 0:.1f}"),
            *(_amount(row[each], format_duration(row[each] or 0)) for each in ("p50_ns", "p99_ns")),
            *(_amount(row[each]) for each in ("late", "too_late", "lost")),
        )
        for row in connections.iter_rows(named=True)
    )
    return Table(title="Connections of nodes and topics", columns=columns, rows=rows, key=2)


def _amount(value: float | None, text: str = "") -> Cell:
    return ABSENT if value is None else Amount(text or str(value), value=float(value))


def _timeline(analysis: Analysis) -> Iterator[Block]:
    names = tabulate_goals(analysis.goals, ())["goal"].to_list() if analysis.goals else []
    timeline = build_timeline(analysis.flow, analysis.goals, names, analysis.thread_states)
    yield from (Text(each, Tone.QUIET) for each in describe_timeline(timeline))
    if timeline.tracks:
        yield Drawing(lambda: draw_timeline(timeline))


def _is_goals(block: Block) -> bool:
    return isinstance(block, Section) and block.title == _GOALS


def _with_links(section: Block) -> Block:
    """The table of goals; those on the timeline link to their slices."""
    assert isinstance(section, Section)
    numbers = count()
    blocks = [
        replace(each, rows=tuple((_link(row[0], numbers), *row[1:]) for row in each.rows))
        if isinstance(each, Table)
        else each
        for each in section.blocks
    ]
    return replace(section, blocks=tuple(blocks))


def _link(cell: Cell, numbers: Iterator[int]) -> Cell:
    if not isinstance(cell, str) or cell == ABSENT:
        return cell
    anchor = anchor_of(next(numbers))
    return Drawing(lambda: h.a(href=f"#{anchor}")[untrusted_text(cell)])


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
    ("executor", "it waits for work, collects what is ready and takes it, or executes: callbacks, services, actions"),
)
