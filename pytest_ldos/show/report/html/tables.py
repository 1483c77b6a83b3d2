"""The tables of a scenario."""

from __future__ import annotations

from collections.abc import Iterator

from htpy import Node

from pytest_ldos.base.units import format_duration, format_quantity
from pytest_ldos.show.report.document import DifferenceKind, MetricReport, PathReport, Sample, Section, Segment, Version
from pytest_ldos.show.report.html.elements import Column, badge, bullet_list, folded, said, table
from pytest_ldos.show.report.html.intervals import draw_change, draw_scale, draw_segment, scale_of, segment_scale
from pytest_ldos.show.report.paths import format_change
from pytest_ldos.show.report.plots.chart import Axis
from pytest_ldos.show.report.words import change_of, interval_of, median_of, percent

_MOST_SEGMENTS = 8


def metrics_table(section: Section) -> Node:
    """Every metric with its numbers; with a base, changes and their intervals."""
    if any(metric.change is not None or metric.incomparable for metric in section.metrics):
        return _compared(section)
    columns = [Column("metric"), *(Column(title, is_number=True) for title in ("median", "CV", "CV adjusted"))]
    rows = [(_name(metric), median_of(metric, metric.head), *_variation(metric.head)) for metric in section.metrics]
    return table(f"Metrics of scenario {section.scenario}", columns, rows)


def _variation(sample: Sample | None) -> tuple[str, str]:
    return (percent(None), percent(None)) if sample is None else (percent(sample.cv), percent(sample.adjusted_cv))


def _compared(section: Section) -> Node:
    scale = scale_of(metric.change for metric in section.metrics if metric.change is not None)
    columns = [
        Column("metric"),
        Column("verdict"),
        *(Column(title, is_number=True) for title in ("change", "interval")),
        Column("interval, drawn", drawing=draw_scale(scale)),
        *(Column(title, is_number=True) for title in (*section.labels, "CV", "floor", "detectable")),
    ]
    rows = [(_name(metric), verdict_of(metric), *_numbers(metric, scale)) for metric in section.metrics]
    return table(f"Metrics of scenario {section.scenario}, and their change", columns, rows)


def _numbers(metric: MetricReport, scale: Axis) -> tuple[Node, ...]:
    cv = percent(None if metric.head is None else metric.head.cv)
    medians = median_of(metric, metric.base), median_of(metric, metric.head)
    change = metric.change
    if change is None:
        return "", "", "", *medians, cv, "", ""
    drawn = draw_change(change, metric.verdict, scale)
    moved = change_of(change), interval_of(change), drawn
    return *moved, *medians, cv, percent(change.floor), percent(change.detectable)


def verdict_of(metric: MetricReport) -> Node:
    """A metric's verdict; nothing where it was not compared."""
    return None if metric.verdict is None else badge(metric.verdict)


def _name(metric: MetricReport) -> Node:
    return [said(metric.name), " ", said(metric.title)]


def path_table(path: PathReport, labels: tuple[str, str]) -> Node:
    """What the parts of a path took, those that moved most first."""
    segments = sorted(path.segments, key=lambda segment: -abs(segment.change_ns))
    columns = [
        Column("segment"),
        *(Column(title, is_number=True) for title in (*labels, "change [interval]", "share")),
        Column("less, or more"),
    ]
    scale = segment_scale(path)
    rows = [_segment_row(each, draw_segment(each, scale)) for each in segments[:_MOST_SEGMENTS]]
    whole = f"{path.path}: {format_change(path.whole)}, {_from_to(path.whole)}"
    rest = [f"{each.name}: {format_change(each)}" for each in segments[_MOST_SEGMENTS:]]
    more = folded(f"{len(rest)} more segments of {path.path}", bullet_list(rest)) if rest else None
    return [table(f"Path {whole}", columns, rows), more]


def _segment_row(segment: Segment, drawn: Node) -> tuple[Node, ...]:
    times = format_duration(segment.base_ns), format_duration(segment.head_ns)
    share = f"{round(100 * segment.share)} %"
    return said(segment.name), *times, format_change(segment), share, drawn


def _from_to(segment: Segment) -> str:
    return f"{format_duration(segment.base_ns)} → {format_duration(segment.head_ns)}"


def values_table(metric: MetricReport, samples: list[tuple[str, str, Sample]]) -> Node:
    """The numbers of a metric's drawings."""
    columns = [Column("version and trial"), Column("stack start", is_number=True), Column("goal")]
    columns.append(Column("value", is_number=True))
    rows = [
        (
            said(f"{label} {point.trial}"),
            str(point.block + 1),
            said(point.goal),
            "failed" if point.value is None else format_quantity(point.value, metric.unit),
        )
        for _, label, sample in samples
        for point in sample.points
    ]
    return table(f"Values of {metric.name} {metric.title}", columns, rows)


def failures_table(versions: list[Version]) -> Node:
    """Every way in which trials failed."""
    columns = [Column(title) for title in ("version", "outcome", "goal", "trials", "message")]
    rows = [
        (
            said(version.label),
            said(failure.outcome if failure.code is None else f"{failure.outcome} (MoveIt code {failure.code})"),
            said(failure.goal),
            ", ".join(map(str, failure.trials)),
            said(failure.message),
        )
        for version in versions
        for failure in version.failures
    ]
    return table("Trials that failed", columns, rows, kind="prose")


def differences_table(section: Section) -> Node:
    """What else differs than the code."""
    kinds = {DifferenceKind.ENVIRONMENT: "environment", DifferenceKind.SETTING: "the stack's setting"}
    columns = [Column(title) for title in ("what", "kind", *section.labels)]
    rows = [(said(each.name), kinds[each.kind], said(each.base), said(each.head)) for each in section.differences]
    return table("What differs beside the code", columns, rows, kind="prose")


def versions_table(versions: list[Version]) -> Node:
    """What was run of each version."""
    columns = [Column("what"), *(Column(version.label) for version in versions)]
    return table("What was run", columns, [(name, *cells) for name, cells in _facts(versions)], kind="prose")


def _facts(versions: list[Version]) -> Iterator[tuple[str, list[Node]]]:
    yield "commit", [said(each.commit or "–") for each in versions]
    yield "started", [said(each.started_at) for each in versions]
    yield "trials", [f"{each.successes} of {each.trials} succeeded" for each in versions]
    yield "stack", [said(each.stack) for each in versions]
    yield "tracer", [said(each.recorder) for each in versions]
    yield "host class", [said(each.host_class) for each in versions]
    yield "events lost", [str(each.discarded_events) for each in versions]
