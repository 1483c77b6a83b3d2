"""Nodes, topics, callbacks, executors, paths and goals of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from pytest_ldos.base.paths import PathSpec
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.text import NS_PER_S, Rendered, counted, format_duration, format_quantity
from pytest_ldos.measure.metrics.extract import TrialMetrics
from pytest_ldos.measure.metrics.model import Measurement, Metric
from pytest_ldos.robot.stack.goals import ErrorCode
from pytest_ldos.show.page.formats import Format, render, require_format, to_json
from pytest_ldos.show.page.model import (
    ABSENT,
    Amount,
    Bullets,
    Cell,
    Column,
    Kind,
    Page,
    Section,
    Table,
    Tone,
    left_out,
)
from pytest_ldos.show.report.sentences import APPROXIMATELY, describe_origins, qualified, report_origins
from pytest_ldos.show.report.words import percent
from pytest_ldos.trace.ctf.stats import describe_incomplete
from pytest_ldos.trace.execution.coverage import describe_missing, name_missing
from pytest_ldos.trace.execution.model import ExecutionModel, TrialSpan
from pytest_ldos.trace.flow.causal import describe_unused
from pytest_ldos.trace.flow.executors import without_states
from pytest_ldos.trace.flow.graph import FlowGraph, Names
from pytest_ldos.trace.flow.summary import summarize_callbacks, summarize_executors, summarize_paths, summarize_topics

Measured = Mapping[str, TrialMetrics]
"""Goals by their id, as returned by `extract_metrics`."""


def tabulate_goals(measured: Measured, metrics: Sequence[Metric]) -> pl.DataFrame:
    """One row per goal, all texts: `goal`, `began` (relative to the first goal), `outcome`, and each metric by name."""
    trials = [each.trial for each in measured.values() if each.trial is not None]
    first_ns = min((trial.begin_ns for trial in trials), default=0)
    return pl.DataFrame([_row(each, metrics, first_ns) for each in measured.values()])


def describe_goals(measured: Measured, metrics: Sequence[Metric]) -> Iterator[str]:
    """Sources of numbers, and reasons for their absence."""
    found = {metric.name: [each.measurements[metric.name] for each in measured.values()] for metric in metrics}
    sources = {name: {each.source for each in column if each.source is not None} for name, column in found.items()}
    yield from describe_origins({name: report_origins(each) for name, each in sources.items()})
    without: dict[str, dict[str, None]] = {}
    for name, column in found.items():
        for value in (each.value for each in column):
            if isinstance(value, Missing | Invalid):
                without.setdefault(value.reason, {})[name] = None
    yield from (f"no {', '.join(names)}: {reason}" for reason, names in without.items())


def _row(measured: TrialMetrics, metrics: Sequence[Metric], first_ns: int) -> dict[str, str]:
    trial = measured.trial
    values = {metric.name: _cell(measured.measurements[metric.name], metric.unit) for metric in metrics}
    if trial is None:
        return {"goal": ABSENT, "began": ABSENT, "outcome": ABSENT, **values}
    name = f"{trial.scenario} {trial.index + 1}" if trial.marked else trial.goal_id
    began = format_duration(trial.begin_ns - first_ns) if trial.begin_ns > first_ns else "0 s"
    return {"goal": name, "began": began, "outcome": _outcome(trial), **values}


def _outcome(trial: TrialSpan) -> str:
    if trial.end_ns is None:
        return "no end"
    if trial.error_code is None:
        return "unknown"
    return "success" if trial.error_code == ErrorCode.SUCCESS else f"MoveIt code {trial.error_code}"


def _cell(measurement: Measurement, unit: str) -> str:
    if measurement.number is None:
        return ABSENT
    sources = () if measurement.source is None else (measurement.source,)
    return qualified(format_quantity(measurement.number, unit), report_origins(sources))


_MOST: Final = 15
"""Rows of a table, unless all are requested."""

_MOST_SPANS: Final = 3
"""Most spans without missing events that are listed individually."""


@dataclass(frozen=True)
class _Column:
    title: str
    source: str
    format: Callable[[Any], str] = str


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """A trace and the results of its analysis.

    Attributes:
        name: of the trace.
        paths: the project's.
        goals: measurements of each.
        metrics: those that were measured.
        thread_states: result of `build_thread_states`, if requested.
    """

    name: str
    flow: FlowGraph
    paths: Sequence[PathSpec]
    goals: Measured
    metrics: Sequence[Metric]
    thread_states: pl.DataFrame | None = None


def render_analysis(
    analysis: Analysis, kind: Format = Format.TERMINAL, *, width: int = 100, color: bool = False, whole: bool = True
) -> Rendered:
    """Renders nodes, topics, callbacks, executors, paths and goals of a trace; a page of HTML also draws them.

    Args:
        whole: show all rows; otherwise the most important of each table, and the number of the others.

    Raises:
        Unavailable: see `require_format`.
    """
    require_format(kind)
    if kind is Format.JSON:
        return to_json({title: frame.to_dicts() for title, frame, _, _ in _tables(analysis)} | _facts(analysis))
    if kind is Format.HTML:
        from pytest_ldos.show.report.trace.page import compose_drawn  # noqa: PLC0415 - for such a page only

        return render(compose_drawn(analysis, compose_page(analysis, most=None)), kind)
    return render(compose_page(analysis, most=None if whole else _MOST), kind, width=width, color=color)


def compose_page(analysis: Analysis, *, most: int | None) -> Page:
    """One section per question.

    Args:
        most: most rows of each table except that of paths; ``None`` for all.
    """
    flow, goals, metrics = analysis.flow, analysis.goals, analysis.metrics
    damage = describe_incomplete(flow.model.stats)
    return Page(
        title=_headline(flow, damage),
        tone=Tone.BAD if damage else Tone.STRONG,
        blocks=(
            *(
                _section(title, frame, columns, most if limited else None)
                for title, frame, columns, limited in _tables(analysis)
            ),
            Bullets(tuple(describe_goals(goals, metrics)), Tone.QUIET),
            Bullets((*describe_unused(analysis.paths, flow.model), *_remarks(flow)), Tone.DOUBT),
        ),
    )


def _tables(analysis: Analysis) -> Iterator[tuple[str, pl.DataFrame, Sequence[_Column], bool]]:
    """Each table with its title and columns, and True if a terminal shows only a part of it."""
    flow = analysis.flow
    yield "nodes", _nodes(flow), _NODES, True
    yield "actions", _actions(flow), _ACTIONS, True
    yield "topics", summarize_topics(flow), _TOPICS, True
    yield "callbacks", summarize_callbacks(flow), _CALLBACKS, True
    yield "executors", summarize_executors(flow), _EXECUTORS, True
    yield "paths", summarize_paths(flow, analysis.paths), _PATHS, False
    yield "goals", tabulate_goals(analysis.goals, analysis.metrics), _goal_columns(analysis.metrics), True


def _facts(analysis: Analysis) -> dict[str, Any]:
    """Entries of the JSON in addition to the tables."""
    model = analysis.flow.model
    missing = [describe_missing(each, model.processes) for each in model.missing_events]
    whole = [{"processes": names, "spans_s": spans} for spans, names in _whole(model).items()]
    facts = {"trace": analysis.name, "events": model.stats.events, "damage": describe_incomplete(model.stats)}
    return {**facts, "missing_events": missing, "whole": whole}


def _headline(flow: FlowGraph, damage: str) -> str:
    model = flow.model
    counts = (
        counted(len(model.processes), "process", "processes"),
        counted(len(model.nodes), "node"),
        counted(len(model.publications), "publication"),
    )
    events = counted(model.stats.events, "event")
    without = name_missing(model)
    whole = f"no event was lost, {without}" if without else "no event of the trace is missing"
    return f"{events}: {', '.join(counts)}; {damage or whole}"


def _nodes(flow: FlowGraph) -> pl.DataFrame:
    """One row per node, with the numbers of its entities."""
    model = flow.model
    nodes = model.nodes.join(model.processes.select("pid", process="id"), on="process").select("pid", "name", node="id")
    for table in ("publishers", "subscriptions", "services", "clients", "timers"):
        counts = getattr(model, table).group_by("node").agg(pl.len().alias(table))
        nodes = nodes.join(counts, on="node", how="left").with_columns(pl.col(table).fill_null(0))
    names = map(Names(model, with_processes=True).node, nodes["node"].to_list())
    unique = pl.Series("name", names, dtype=pl.String)
    is_same = nodes.select("name", "pid").is_duplicated()
    return nodes.with_columns(pl.when(is_same).then(unique).otherwise("name").alias("name")).sort("name", "pid")


def _actions(flow: FlowGraph) -> pl.DataFrame:
    """One row per action and node, servers first."""
    names = Names(flow.model, with_processes=True)
    ids = flow.model.nodes["id"]
    nodes = pl.DataFrame({"id": ids, "of": pl.Series(map(names.node, ids.to_list()), dtype=pl.String)})
    roles = flow.model.actions.join(nodes, left_on="node", right_on="id").select("name", "role", "of").unique()
    return roles.sort("name", "role", "of", descending=[False, True, False])


def _remarks(flow: FlowGraph) -> Iterator[str]:
    """Missing parts of the trace, and the reasons."""
    yield from (describe_missing(each, flow.model.processes) for each in flow.model.missing_events)
    why = "made before tracing began" + (", or that event is missing" if flow.model.missing_events else "")
    yield from _describe_whole(flow.model)
    for table, count in flow.model.unknown.items():
        what = counted(count, table.removesuffix("s"))
        yield f"{what} without an init event ({why}): shown as unknown"
    for what, count in flow.model.unpaired.items():
        yield f"{count} {what}"
    for cause, count in flow.without_partner.items():
        yield f"{count} {cause}"
    if len(flow.model.hosts) > 1:
        yield f"latencies between hosts ({APPROXIMATELY}) are as exact as their clocks agree: see --clock-offset"
    if silent := without_states(flow.model):
        yield (
            f"{counted(silent, 'thread')} ran callbacks without events of an executor, as with rclcpp's events "
            "executor: their states are not known"
        )


def _whole(model: ExecutionModel) -> dict[tuple[tuple[float, float], ...], list[str]]:
    """Processes with possibly missing events, by their complete spans, in seconds from the first event."""
    first_ns, last_ns = model.extent_ns
    found: dict[tuple[tuple[float, float], ...], list[str]] = {}
    for process in model.coverage.processes:
        pid, name = model.processes.select("pid", "name").row(process)
        whole = model.coverage.whole_spans(process, first_ns, last_ns)
        spans = tuple(((begin - first_ns) / NS_PER_S, (end - first_ns) / NS_PER_S) for begin, end in whole)
        if whole != [(first_ns, last_ns)]:
            found.setdefault(spans, []).append(f"{name or 'process'} ({pid})")
    return found


def _describe_whole(model: ExecutionModel) -> Iterator[str]:
    length_s = (model.extent_ns[1] - model.extent_ns[0]) / NS_PER_S
    for spans, names in _whole(model).items():
        where = ", ".join(f"{begin:.3f} s to {end:.3f} s" for begin, end in spans) or "nowhere"
        if len(spans) > _MOST_SPANS:
            where = f"{len(spans)} spans, {sum(end - begin for begin, end in spans):.3f} s"
        yield (
            f"whole: {where} of {length_s:.3f} s for {', '.join(names[:_MOST])}{', …' if len(names) > _MOST else ''}; "
            "rates, losses, lateness and states of executors are of that time"
        )


def _duration(nanoseconds: float | None) -> str:
    return ABSENT if nanoseconds is None else format_duration(nanoseconds)


def _rate(hertz: float | None) -> str:
    return ABSENT if hertz is None else f"{hertz:.1f}"


def _count(number: int | None) -> str:
    return ABSENT if number is None else str(number)


def _text(value: object) -> str:
    return ABSENT if value is None else str(value)


_NODES: Final = (
    _Column("node", "name", _text),
    _Column("pid", "pid"),
    _Column("pubs", "publishers"),
    _Column("subs", "subscriptions"),
    _Column("services", "services"),
    _Column("clients", "clients"),
    _Column("timers", "timers"),
)
_ACTIONS: Final = (
    _Column("action", "name", _text),
    _Column("role", "role", _text),
    _Column("node", "of", _text),
)
_TOPICS: Final = (
    _Column("topic", "topic", _text),
    _Column("messages", "messages"),
    _Column("Hz", "rate_hz", _rate),
    _Column("received", "received"),
    _Column("p50", "p50_ns", _duration),
    _Column("p99", "p99_ns", _duration),
    _Column("late", "late", _count),
    _Column("too late", "too_late", _count),
    _Column("lost", "lost", _count),
)
_CALLBACKS: Final = (
    _Column("callback", "callback", _text),
    _Column("runs", "runs"),
    _Column("total", "total_ns", _duration),
    _Column("p50", "p50_ns", _duration),
    _Column("p90", "p90_ns", _duration),
    _Column("p99", "p99_ns", _duration),
    _Column("max", "max_ns", _duration),
)
_EXECUTORS: Final = (
    _Column("executor of", "process", _text),
    _Column("pid", "pid"),
    _Column("threads", "threads"),
    _Column("waiting", "waiting", percent),
    _Column("processing", "processing", percent),
    _Column("executing", "executing", percent),
)
_PATHS: Final = (
    _Column("path", "path", _text),
    _Column("passages", "passages"),
    _Column("p50", "p50_ns", _duration),
    _Column("p99", "p99_ns", _duration),
    _Column("max", "max_ns", _duration),
    _Column("deadline", "deadline_ns", _duration),
    _Column("missed", "missed"),
    _Column("most time in", "longest", _text),
    _Column("share", "share", percent),
)


def _goal_columns(metrics: Sequence[Metric]) -> tuple[_Column, ...]:
    own = (_Column("goal", "goal", _text), _Column("began", "began"), _Column("outcome", "outcome"))
    return (*own, *(_Column(metric.name, metric.name) for metric in metrics))


def _section(title: str, frame: pl.DataFrame, columns: Sequence[_Column], most: int | None) -> Section:
    rows = frame.head(most or len(frame)).iter_rows(named=True)
    table = Table(
        columns=tuple(Column(each.title, Kind.NAME if each.format is _text else Kind.NUMBER) for each in columns),
        rows=tuple(tuple(_table_cell(each, row) for each in columns) for row in rows),
    )
    return Section(title, (table, *left_out(len(frame) - len(table.rows))))


def _table_cell(column: _Column, row: Mapping[str, Any]) -> Cell:
    """A cell as text, and its number for sorting."""
    value = row[column.source]
    shown = column.format(value)
    if row.get("between_hosts") and column.format is _duration and value is not None:
        shown = f"{APPROXIMATELY} {shown}"
    return Amount(shown, value=float(value)) if isinstance(value, int | float) else shown
