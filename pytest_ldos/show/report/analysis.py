"""One trace in tables, and many traces side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import PurePath
from typing import Any, Final

import polars as pl

from pytest_ldos.base.ros2 import PathSpec
from pytest_ldos.base.series import Invalid, Missing
from pytest_ldos.base.text import NS_PER_S, Rendered, counted, format_duration, format_quantity, one_line
from pytest_ldos.fleet.traces import Pooled, TraceSummary, is_whole, median_of, metric_names, pool
from pytest_ldos.measure.metrics.catalogue import METRICS
from pytest_ldos.measure.metrics.extract import TrialMetrics
from pytest_ldos.measure.metrics.model import Measurement, Metric
from pytest_ldos.robot.stack.goals import ErrorCode
from pytest_ldos.show.page import model as page
from pytest_ldos.show.page.formats import Format, render, require_format, to_json
from pytest_ldos.show.report.sentences import APPROXIMATELY, describe_origins, name_unmatched, qualified, report_origins
from pytest_ldos.show.report.words import known_percent
from pytest_ldos.trace.ctf.stats import describe_incomplete
from pytest_ldos.trace.execution.coverage import describe_missing, name_missing
from pytest_ldos.trace.execution.model import ExecutionModel, TrialSpan
from pytest_ldos.trace.flow.graph import FlowGraph, Names
from pytest_ldos.trace.flow.links import describe_unused
from pytest_ldos.trace.flow.summary import (
    summarize_callbacks,
    summarize_executors,
    summarize_paths,
    summarize_topics,
    without_states,
)

Measured = Mapping[str, TrialMetrics]  # goals by their id, as returned by `extract_metrics`


def tabulate_goals(measured: Measured, metrics: Sequence[Metric]) -> pl.DataFrame:
    """One row per goal, all texts: `goal`, `began` (relative to the first goal), `outcome`, and each metric by name."""
    trials = [each.trial for each in measured.values() if each.trial is not None]
    first_ns = min((trial.begin_ns for trial in trials), default=0)
    rows = []
    for each in measured.values():
        cells = {metric.name: _cell(each.measurements[metric.name], metric.unit) for metric in metrics}
        rows.append({**_describe_goal(each.trial, first_ns), **cells})
    return pl.DataFrame(rows)


def describe_goals(measured: Measured, metrics: Sequence[Metric]) -> Iterator[str]:
    found = {metric.name: [each.measurements[metric.name] for each in measured.values()] for metric in metrics}
    sources = {name: {each.source for each in column if each.source is not None} for name, column in found.items()}
    yield from describe_origins({name: report_origins(each) for name, each in sources.items()})
    without: dict[str, dict[str, None]] = {}
    for name, column in found.items():
        for value in (each.value for each in column):
            if isinstance(value, Missing | Invalid):
                without.setdefault(value.reason, {})[name] = None
    yield from (f"no {', '.join(names)}: {reason}" for reason, names in without.items())
    yield from name_unmatched(each.measurements for each in measured.values())


def _describe_goal(trial: TrialSpan | None, first_ns: int) -> dict[str, str]:
    if trial is None:
        return {"goal": page.ABSENT, "began": page.ABSENT, "outcome": page.ABSENT}
    name = f"{trial.scenario} {trial.index + 1}" if trial.marked else trial.goal_id
    began = format_duration(trial.begin_ns - first_ns) if trial.begin_ns > first_ns else "0 s"
    outcome = "success" if trial.error_code == ErrorCode.SUCCESS else f"MoveIt code {trial.error_code}"
    if trial.end_ns is None or trial.error_code is None:
        outcome = "no end" if trial.end_ns is None else "unknown"
    return {"goal": name, "began": began, "outcome": outcome}


def _cell(measurement: Measurement, unit: str) -> str:
    if measurement.number is None:
        return page.ABSENT
    sources = () if measurement.source is None else (measurement.source,)
    return qualified(format_quantity(measurement.number, unit), report_origins(sources))


_MOST: Final = 15  # rows of a table, unless all are requested
_MOST_SPANS: Final = 3  # most spans without missing events that are listed individually


@dataclass(frozen=True)
class _Column:
    title: str
    source: str
    format: Callable[[Any], str] = str
    kind: page.Kind = page.Kind.NUMBER


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """A trace and the results of its analysis; `thread_states`, if requested, come from `build_thread_states`."""

    name: str
    flow: FlowGraph
    paths: Sequence[PathSpec]
    goals: Measured
    metrics: Sequence[Metric]
    thread_states: pl.DataFrame | None = None


def render_analysis(
    analysis: Analysis, kind: Format = Format.TERMINAL, *, width: int = 100, color: bool = False, whole: bool = True
) -> Rendered:
    """Renders a trace in tables, and drawn in HTML, which may be `Unavailable`; all rows if `whole`."""
    require_format(kind)
    if kind is Format.JSON:
        model = analysis.flow.model
        facts = {
            "trace": analysis.name,
            "events": model.stats.events,
            "damage": describe_incomplete(model.stats),
            "uncertain_links": list(analysis.flow.uncertain),
            "missing_events": [describe_missing(each, model.processes) for each in model.missing_events],
            "whole": [{"processes": names, "spans_s": spans} for spans, names in _whole(model).items()],
        }
        return to_json({title: frame.to_dicts() for title, frame, _, _ in _tables(analysis)} | facts)
    if kind is Format.HTML:
        from pytest_ldos.show.report.trace_page import compose_drawn  # noqa: PLC0415 - for such a page only

        return render(compose_drawn(analysis, compose_page(analysis, most=None)), kind)
    return render(compose_page(analysis, most=None if whole else _MOST), kind, width=width, color=color)


def render_live(
    title: str, flow: FlowGraph | None, paths: Sequence[PathSpec], *, most: int, width: int, color: bool
) -> Rendered:
    """Renders what changes while a system runs, `most` rows per table except that of paths; 0 for one line."""
    if flow is None:
        return Rendered(f"{title}\n")
    if most:
        tone = page.Tone.BAD if describe_incomplete(flow.model.stats) else page.Tone.STRONG
        shown = page.Page(title=title, tone=tone, blocks=tuple(_sections(_changing_tables(flow, paths), most)))
        return render(shown, Format.TERMINAL, width=width, color=color)
    passed, sent = summarize_paths(flow, paths).to_dicts(), summarize_topics(flow).drop_nulls("rate_hz").head(3)
    rows = [f"{each['path']} p99 {format_duration(each['p99_ns'])}" for each in passed]
    for topic, rate_hz, p99_ns in sent.select("topic", "rate_hz", "p99_ns").iter_rows():
        rows.append(f"{topic} {rate_hz:.1f} Hz" + (f" p99 {format_duration(p99_ns)}" if p99_ns else ""))
    return Rendered(f"{one_line(' · '.join((title, *rows)))}\n")


def compose_page(analysis: Analysis, *, most: int | None) -> page.Page:
    """One section per question, with `most` rows per table except that of paths; ``None`` for all."""
    flow, goals, metrics = analysis.flow, analysis.goals, analysis.metrics
    damage = describe_incomplete(flow.model.stats)
    return page.Page(
        title=_headline(flow.model, damage),
        tone=page.Tone.BAD if damage else page.Tone.STRONG,
        blocks=(
            *_sections(_tables(analysis), most),
            page.Bullets(tuple(describe_goals(goals, metrics)), page.Tone.QUIET),
            page.Bullets((*describe_unused(analysis.paths, flow.model), *_remarks(flow)), page.Tone.DOUBT),
        ),
    )


_Titled = tuple[str, pl.DataFrame, Sequence[_Column], bool]  # with columns, and True if a terminal shows only a part


def _tables(analysis: Analysis) -> Iterator[_Titled]:
    flow = analysis.flow
    yield "nodes", _nodes(flow), _NODES, True
    yield "actions", _actions(flow), _ACTIONS, True
    yield from _changing_tables(flow, analysis.paths)
    columns = (*_GOALS, *(_Column(metric.name, metric.name) for metric in analysis.metrics))
    yield "goals", tabulate_goals(analysis.goals, analysis.metrics), columns, True


def _changing_tables(flow: FlowGraph, paths: Sequence[PathSpec]) -> Iterator[_Titled]:
    yield "topics", summarize_topics(flow), _TOPICS, True
    yield "callbacks", summarize_callbacks(flow), _CALLBACKS, True
    yield "executors", summarize_executors(flow), _EXECUTORS, True
    yield "paths", summarize_paths(flow, paths), _PATHS, False


def _sections(tables: Iterable[_Titled], most: int | None) -> Iterator[page.Section]:
    for title, frame, columns, limited in tables:
        yield _section(title, frame, columns, most if limited else None)


def _headline(model: ExecutionModel, damage: str) -> str:
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
    model = flow.model
    nodes = model.nodes.join(model.processes.select("pid", process="id"), on="process").select("pid", "name", node="id")
    for table in ("publishers", "subscriptions", "services", "clients", "timers"):
        counts = getattr(model, table).group_by("node").agg(pl.len().alias(table))
        nodes = nodes.join(counts, on="node", how="left").with_columns(pl.col(table).fill_null(0))
    unique = pl.Series("name", map(Names(model, with_processes=True).node, nodes["node"].to_list()), dtype=pl.String)
    is_same = nodes.select("name", "pid").is_duplicated()
    return nodes.with_columns(pl.when(is_same).then(unique).otherwise("name").alias("name")).sort("name", "pid")


def _actions(flow: FlowGraph) -> pl.DataFrame:
    names = Names(flow.model, with_processes=True)
    ids = flow.model.nodes["id"]
    nodes = pl.DataFrame({"id": ids, "of": pl.Series(map(names.node, ids.to_list()), dtype=pl.String)})
    roles = flow.model.actions.join(nodes, left_on="node", right_on="id").select("name", "role", "of").unique()
    return roles.sort("name", "role", "of", descending=[False, True, False])


def _remarks(flow: FlowGraph) -> Iterator[str]:
    yield from (describe_missing(each, flow.model.processes) for each in flow.model.missing_events)
    yield from _describe_whole(flow.model)
    yield from flow.uncertain
    why = "made before tracing began" + (", or that event is missing" if flow.model.missing_events else "")
    for table, count in flow.model.unknown.items():
        what = counted(count, table.removesuffix("s"))
        yield f"{what} without an init event ({why}): shown as unknown"
    for what, count in (*flow.model.unpaired.items(), *flow.without_partner.items()):
        yield f"{count} {what}"
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


def _name(title: str, source: str = "") -> _Column:
    return _Column(title, source or title, kind=page.Kind.NAME)


def _counts(*titles: str) -> tuple[_Column, ...]:
    return tuple(_Column(title, title.replace(" ", "_")) for title in titles)


def _times(*titles: str) -> tuple[_Column, ...]:
    return tuple(_Column(title, f"{title}_ns", format_duration) for title in titles)


def _shares(*titles: str) -> tuple[_Column, ...]:
    return tuple(_Column(title, title, known_percent) for title in titles)


_NODES: Final = (
    _name("node", "name"),
    *_counts("pid"),
    _Column("pubs", "publishers"),
    _Column("subs", "subscriptions"),
    *_counts("services", "clients", "timers"),
)
_ACTIONS: Final = (_name("action", "name"), _name("role"), _name("node", "of"))
_RATE: Final = _Column("Hz", "rate_hz", "{:.1f}".format)
_LOSSES: Final = (*_counts("received"), *_times("p50", "p99"), *_counts("late", "too late", "lost"))
_TOPICS: Final = (_name("topic"), *_counts("messages"), _RATE, *_LOSSES)
_CALLBACKS: Final = (_name("callback"), *_counts("runs"), *_times("total", "p50", "p90", "p99", "max"))
_EXECUTORS: Final = (
    _name("executor of", "process"),
    *_counts("pid", "threads"),
    *_shares("waiting", "processing", "executing"),
)
_PATHS: Final = (
    _name("path"),
    *_counts("passages"),
    *_times("p50", "p99", "max", "deadline"),
    *_counts("missed"),
    _name("most time in", "longest"),
    *_shares("share"),
)
_GOALS: Final = (_name("goal"), *_counts("began", "outcome"))


def _section(title: str, frame: pl.DataFrame, columns: Sequence[_Column], most: int | None) -> page.Section:
    rows = frame.head(most or len(frame)).iter_rows(named=True)
    table = page.Table(
        columns=tuple(page.Column(each.title, each.kind) for each in columns),
        rows=tuple(tuple(_table_cell(each, row) for each in columns) for row in rows),
    )
    return page.Section(title, (table, *page.left_out(len(frame) - len(table.rows))))


def _table_cell(column: _Column, row: Mapping[str, Any]) -> page.Cell:
    value = row[column.source]
    shown = page.ABSENT if value is None else column.format(value)
    if (row.get("between_hosts") or row.get("uncertain")) and column.format is format_duration and value is not None:
        shown = f"{APPROXIMATELY} {shown}"
    return page.Amount(shown, value=float(value)) if isinstance(value, int | float) else shown


_MOST_TRACES: Final = 40
_REFINING: Final = frozenset(metric.name for metric in METRICS.values() if metric.refines)
"""Metrics shown over all traces only, for lack of space."""


def render_fleet(summaries: Sequence[TraceSummary], *, width: int, color: bool, whole: bool) -> Rendered:
    """Readable traces, all if `whole`, then all together, then those that cannot be read."""
    most = None if whole else _MOST_TRACES
    readable = [each for each in summaries if not each.problem]
    unreadable = [each for each in summaries if each.problem]
    partial = sum(not is_whole(each) for each in readable)
    those = "1 trace that is" if partial == 1 else f"{partial} traces that are"
    common = _common_folder(summaries)
    problems = tuple(page.Text(f"{_short(each.trace, common)}: {each.problem}", is_whole=True) for each in unreadable)
    damaged = tuple(f"{_short(each.trace, common)}: {each.damage}" for each in readable if each.damage)
    composed = page.Page(
        title=_fleet_headline(readable, unreadable, common),
        tone=page.Tone.BAD if unreadable else page.Tone.STRONG,
        blocks=(
            _trace_table(readable[:most], common),
            *page.left_out(len(readable) - len(readable[:most])),
            page.Bullets(damaged, page.Tone.DOUBT),
            _pool_table(pool(readable)),
            *([page.Text(f"left out: {those} damaged or lost events", page.Tone.DOUBT)] if partial else []),
            page.Section("could not be read", problems),
        ),
    )
    return render(composed, Format.TERMINAL, width=width, color=color)


def _fleet_headline(readable: Sequence[TraceSummary], unreadable: Sequence[TraceSummary], common: str) -> str:
    count = len(readable) + len(unreadable)
    goals = sum(each.reached + each.failed + each.unknown for each in readable)
    bad = f"; {len(unreadable)} could not be read" if unreadable else ""
    where = f" below {common}" if common else ""
    events = counted(sum(each.events for each in readable), "event")
    return f"{counted(count, 'trace')}{where}: {events}, {counted(goals, 'goal')}{bad}"


def _common_folder(summaries: Sequence[TraceSummary]) -> str:
    """Common parent folder of all traces; empty for one trace or if there is none."""
    if len(summaries) < 2:
        return ""
    levels = zip(*(PurePath(each.trace).parent.parts for each in summaries), strict=False)
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels)]
    return str(PurePath(*common)) if common not in ([], ["/"]) else ""


def _short(trace: str, common: str) -> str:
    name = PurePath(trace)
    return str(name.relative_to(common)) if common else str(name)


def _trace_table(summaries: Sequence[TraceSummary], common: str) -> page.Table:
    shown = (name for name in metric_names(summaries) if name not in _REFINING)
    metrics = [name for name in shown if any(median_of(each, name) is not None for each in summaries)]
    columns = (*page.names("trace"), *page.numbers("nodes"), *page.names("goals"), *page.numbers(*metrics, "lost"))
    return page.Table(columns=columns, rows=tuple(_fleet_row(each, metrics, common) for each in summaries))


def _fleet_row(summary: TraceSummary, metrics: Sequence[str], common: str) -> tuple[str, ...]:
    medians = (median_of(summary, name) for name in metrics)
    numbers = (page.ABSENT if found is None else format_quantity(*found) for found in medians)
    counts = (("reached", summary.reached), ("failed", summary.failed), ("unknown", summary.unknown))
    goals = ", ".join(f"{count} {word}" for word, count in counts if count) or page.ABSENT
    return (_short(summary.trace, common), str(summary.nodes), goals, *numbers, str(summary.lost_events))


def _pool_table(pooled: Sequence[Pooled]) -> page.Table:
    rows = (
        (
            each.metric,
            str(each.count),
            str(each.traces),
            format_quantity(each.median, each.unit),
            format_quantity(each.p95, each.unit),
            each.source or "own function",
        )
        for each in pooled
    )
    columns = (*page.names("metric"), *page.numbers("goals", "traces", "median", "p95"), *page.words("source"))
    return page.Table(columns=columns, rows=tuple(rows))
