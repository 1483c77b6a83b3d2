"""Page of verdicts with drawings and tables of each scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import Rendered, format_duration, format_quantity
from pytest_ldos.show.page import html
from pytest_ldos.show.page.html import untrusted_text
from pytest_ldos.show.page.model import (
    ABSENT,
    Block,
    Bullets,
    Cell,
    Column,
    Drawing,
    Figure,
    Folded,
    Kind,
    Legend,
    Page,
    Table,
    Text,
    Tone,
)
from pytest_ldos.show.page.model import Section as Shown
from pytest_ldos.show.report import drawings, words
from pytest_ldos.show.report.chart import Axis
from pytest_ldos.show.report.document import (
    DifferenceKind,
    Document,
    MetricReport,
    PathReport,
    Sample,
    Section,
    Segment,
    Version,
)
from pytest_ldos.show.report.trace_against import Part, Waterfall, mark
from pytest_ldos.show.report.trace_page import draw_waterfalls

_MOST_SEGMENTS = 8


def metrics_table(section: Section) -> Table:
    if any(metric.change is not None or metric.incomparable for metric in section.metrics):
        return _compared(section)
    rows = []
    for metric in section.metrics:
        cvs = (None, None) if metric.head is None else (metric.head.cv, metric.head.adjusted_cv)
        rows.append((_name(metric), words.median_of(metric, metric.head), *map(words.percent, cvs)))
    columns = (Column("metric", Kind.NAME), *map(Column, ("median", "CV", "CV adjusted")))
    return Table(title=f"Metrics of scenario {section.scenario}", columns=columns, rows=tuple(rows))


def _compared(section: Section) -> Table:
    scale = drawings.scale_of(metric.change for metric in section.metrics if metric.change is not None)
    columns = (
        Column("metric", Kind.NAME),
        Column("verdict", Kind.WORD),
        *map(Column, ("change", "interval")),
        Column("interval, drawn", Kind.WORD, drawing=Drawing(lambda: drawings.draw_scale(scale))),
        *map(Column, (*section.labels, "CV", "floor", "MDE")),
    )
    rows = (
        (_name(metric), words.badge_of_metric(metric), *_numbers(metric, scale))
        for metric in words.shown_metrics(section)
    )
    title = f"Metrics of scenario {section.scenario}, and their change"
    return Table(title=title, columns=columns, rows=tuple(rows))


def _numbers(metric: MetricReport, scale: Axis) -> tuple[Cell, ...]:
    cv = words.percent(None if metric.head is None else metric.head.cv)
    medians = words.median_of(metric, metric.base), words.median_of(metric, metric.head)
    change = metric.change
    if change is None:
        return "", "", "", *medians, cv, "", ""
    drawn = Drawing(lambda: drawings.draw_change(change, metric.verdict, scale))
    moved = words.change_of(change), words.interval_of(change), drawn
    return *moved, *medians, cv, words.percent(change.floor), words.mde_of(change)


def _name(metric: MetricReport) -> str:
    return f"{metric.name} {metric.title}"


def path_table(path: PathReport, labels: tuple[str, str]) -> tuple[Block, ...]:
    """Durations of the parts of a path, those with the largest change first."""
    segments = sorted(path.segments, key=lambda segment: -abs(segment.change_ns))
    scale = drawings.segment_scale(path)

    def row(segment: Segment) -> tuple[Cell, ...]:
        both = format_duration(segment.base_ns), format_duration(segment.head_ns)
        drawn = Drawing(lambda: drawings.draw_segment(segment, scale))
        return segment.name, *both, words.format_change(segment), f"{round(100 * segment.share)} %", drawn

    change, times = words.format_change(path.whole), map(format_duration, (path.whole.base_ns, path.whole.head_ns))
    shown = Table(
        title=f"Path {path.path}: {change}, {' → '.join(times)}",
        columns=(
            Column("segment", Kind.NAME),
            *map(Column, (*labels, "change [interval]", "share")),
            Column("less, or more", Kind.WORD),
        ),
        rows=tuple(map(row, segments[:_MOST_SEGMENTS])),
    )
    rest = tuple(f"{each.name}: {words.format_change(each)}" for each in segments[_MOST_SEGMENTS:])
    more = (Folded(f"{len(rest)} more segments of {path.path}", (Bullets(rest),)),) if rest else ()
    return (shown, *more)


def values_table(metric: MetricReport, samples: list[tuple[str, str, Sample]]) -> Table:
    rows = (
        (
            f"{label} {point.trial}",
            str(point.block + 1),
            point.goal,
            "failed" if point.value is None else format_quantity(point.value, metric.unit),
        )
        for _, label, sample in samples
        for point in sample.points
    )
    names = (Column("version and trial", Kind.NAME), Column("stack start"), Column("goal", Kind.NAME))
    title = f"Values of {metric.name} {metric.title}"
    return Table(title=title, columns=(*names, Column("value")), rows=tuple(rows))


def failures_table(versions: list[Version]) -> Table:
    rows = (
        (
            version.label,
            failure.outcome if failure.code is None else f"{failure.outcome} (MoveIt code {failure.code})",
            failure.goal,
            ", ".join(map(str, failure.trials)),
            failure.message,
        )
        for version in versions
        for failure in version.failures
    )
    return _prose("Trials that failed", ("version", "outcome", "goal", "trials", "message"), rows)


def differences_table(section: Section) -> Table:
    kinds = {DifferenceKind.ENVIRONMENT: "environment", DifferenceKind.SETTING: "the stack's setting"}
    rows = ((each.name, kinds[each.kind], each.base, each.head) for each in section.differences)
    return _prose("Differences other than the code", ("what", "kind", *section.labels), rows)


def versions_table(versions: list[Version]) -> Table:
    facts = (
        ("commit", *(each.commit or ABSENT for each in versions)),
        ("started", *(each.started_at for each in versions)),
        ("trials", *(f"{each.successes} of {each.trials} succeeded" for each in versions)),
        ("stack", *(each.stack for each in versions)),
        ("tracer", *(each.recorder for each in versions)),
        ("host class", *(each.host_class for each in versions)),
        ("events lost", *(str(each.discarded_events) for each in versions)),
    )
    return _prose("What was run", ("what", *(version.label for version in versions)), facts)


def _prose(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    return Table(title=title, columns=tuple(Column(each, Kind.NAME) for each in columns), rows=tuple(rows))


def show_section(section: Section, *, name: str, anchor: str) -> Shown:
    return Shown(name, tuple(_blocks(section)), badge=words.badge_of(section.verdict), anchor=anchor)


def _blocks(section: Section) -> Iterator[Block]:
    versions = [version for version in (section.base, section.head) if version is not None]
    measured = _listed((*words.describe_measurement(section), *words.describe_details(section)))
    yield Text(words.describe_outcome(section), Tone.QUIET)
    yield from words.show_findings(section)
    if words.shown_metrics(section):
        yield Shown("All metrics", (metrics_table(section), _listed(words.describe_sources(section))))
    yield Shown("Where the time went", tuple(_paths(section)))
    yield Shown("Failures", (failures_table(versions),))
    measured_metrics = (metric for metric in words.shown_metrics(section) if _samples(section, metric))
    yield Shown("Trials", tuple(_metric(section, metric) for metric in measured_metrics))
    yield Shown("What else differs", (differences_table(section),))
    yield Shown("How it was measured", (versions_table(versions), measured) if versions else (measured,))


def _listed(lines: Iterable[str]) -> Bullets:
    return Bullets(tuple(lines))


def _paths(section: Section) -> Iterator[Block]:
    moved = list(dict.fromkeys(path for _, path in words.moved_paths(section)))
    for path in moved:
        if path.segments:
            yield _waterfall(path, section.labels)
        yield from path_table(path, section.labels)
    others = [path for path in section.paths if path not in moved]
    yield from (Folded(f"path {path.path}", path_table(path, section.labels)) for path in others if path.segments)


def _waterfall(path: PathReport, labels: tuple[str, str]) -> Drawing:
    return Drawing(lambda: draw_path(path, labels))


def draw_path(path: PathReport, labels: tuple[str, str]) -> Node:
    """Draws medians of the parts of a path in both versions, base and head, on one scale."""
    blamed = next((each.name for each in path.segments if each.is_certain), "")

    def part(segment: Segment, *, is_head: bool) -> Part:
        note = words.format_change(segment) if is_head and segment.name == blamed else ""
        return Part(segment.name, round(segment.head_ns if is_head else segment.base_ns), note)

    base, head = (
        Waterfall(
            f"{path.path}, {label}",
            tuple(part(each, is_head=is_head) for each in path.segments),
            whole_ns=round(path.whole.head_ns if is_head else path.whole.base_ns),
        )
        for label, is_head in zip(labels, (False, True), strict=True)
    )
    scale_ns = max(base.duration_ns, head.duration_ns)
    return draw_waterfalls([mark(each, blamed) for each in (base, head)], scale_ns=scale_ns)


def _metric(section: Section, metric: MetricReport) -> Figure:
    samples = _samples(section, metric)
    is_interleaved = section.interleaving is not None
    return Figure(
        title=f"{metric.name} {metric.title}",
        badge=None if metric.verdict is None else words.badge_of(metric.verdict),
        drawings=(
            Drawing(lambda: drawings.draw_distribution(metric, samples)),
            Drawing(lambda: drawings.draw_timeline(metric, samples, is_interleaved=is_interleaved)),
        ),
        table=values_table(metric, samples),
    )


def _samples(section: Section, metric: MetricReport) -> list[tuple[str, str, Sample]]:
    found = (("base", section.base, metric.base), ("head", section.head, metric.head))
    return [(name, version.label, sample) for name, version, sample in found if version and sample]


def render(document: Document) -> Rendered:
    return html.render(compose_page(document))


def compose_page(document: Document) -> Page:
    anchored = [
        (f"scenario-{number}", document.name_of(section), section)
        for number, section in enumerate(document.sections, 1)
    ]
    return Page(
        title=words.title_of(document.stacks),
        badge=words.badge_of(document.verdict),
        setting=words.describe_setting(document),
        contents=_overview(anchored),
        blocks=(
            *(show_section(section, name=name, anchor=anchor) for anchor, name, section in anchored),
            Shown("How to read this", (Legend(_MEANINGS),)),
        ),
        made=f"{document.made_by} {document.made_at}".strip() or "pytest-ldos",
    )


def _overview(anchored: list[tuple[str, str, Section]]) -> Table:
    return Table(
        title="Scenarios and their verdicts",
        columns=tuple(Column(title, Kind.NAME) for title in ("scenario", "verdict", "trials", "in short")),
        rows=tuple(
            (
                _way_to(anchor, name),
                words.badge_of(section.verdict),
                words.describe_success(section),
                words.summarize(section),
            )
            for anchor, name, section in anchored
        ),
    )


def _way_to(anchor: str, name: str) -> Drawing:
    return Drawing(lambda: h.a(href=f"#{anchor}")[untrusted_text(name)])


_MEANINGS: Final = (
    ("●", "a trial of this run"),
    ("◇", "a trial of the base, or baseline"),
    ("✕", "a failed trial; in latencies that a failure cuts short it counts as slower than any"),
    ("interval", "of the true change; a change is reported only if it excludes zero"),
    ("floor", "the shaded field: smaller effects are not reported on this host"),
    ("MDE", "minimum detectable effect: it is reported in four of five such runs"),
    ("stack start", "a field of the trials in order; the stack was started again at its beginning"),
    ("CV", "coefficient of variation between trials"),
)
