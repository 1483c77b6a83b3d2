"""Page of verdicts with drawings and tables of each scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from htpy import Node

from pytest_ldos.base.text import Rendered, format_duration, format_quantity
from pytest_ldos.show.page import html
from pytest_ldos.show.page import model as page
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


def metrics_table(section: Section) -> page.Table:
    if any(metric.change is not None or metric.incomparable for metric in section.metrics):
        return _compared(section)
    rows = []
    for metric in section.metrics:
        cvs = (None, None) if metric.head is None else (metric.head.cv, metric.head.adjusted_cv)
        rows.append((metric.label, words.median_of(metric, metric.head), *map(words.known_percent, cvs)))
    columns = (*page.names("metric"), *page.numbers("median", "CV", "CV adjusted"))
    return page.Table(title=f"Metrics of scenario {section.scenario}", columns=columns, rows=tuple(rows))


def _compared(section: Section) -> page.Table:
    scale = drawings.scale_of(metric.change for metric in section.metrics if metric.change is not None)
    columns = (
        *page.names("metric"),
        *page.words("verdict"),
        *page.numbers("change", "interval"),
        page.Column("interval, drawn", page.Kind.WORD, drawing=page.Drawing(lambda: drawings.draw_scale(scale))),
        *page.numbers(*section.labels, "CV", "floor", "MDE"),
    )
    rows = (
        (metric.label, words.badge_of_metric(metric), *_numbers(metric, scale))
        for metric in words.shown_metrics(section)
    )
    title = f"Metrics of scenario {section.scenario}, and their change"
    return page.Table(title=title, columns=columns, rows=tuple(rows))


def _problems(section: Section) -> Iterator[page.Block]:
    """A table of all problems for each metric, with their changes drawn on one scale."""
    scale = drawings.scale_of(each.change for metric in section.metrics for each in metric.cases if each.change)
    column = page.Column("change, drawn", page.Kind.WORD, drawing=page.Drawing(lambda: drawings.draw_scale(scale)))
    for metric in section.of_suite:
        table = words.cases_table(section, [metric])
        drawn = (
            page.Drawing(partial(drawings.draw_change, each.change, None, scale)) if each.change else ""
            for each in metric.cases
        )
        rows = tuple((*row, each) for row, each in zip(table.rows, drawn, strict=True))
        title = f"{metric.label} by problem, the worst first"
        yield page.Table(title=title, columns=(*table.columns, column), rows=rows).without_empty()


def _numbers(metric: MetricReport, scale: Axis) -> tuple[page.Cell, ...]:
    cv = words.known_percent(None if metric.head is None else metric.head.cv)
    medians = words.median_of(metric, metric.base), words.median_of(metric, metric.head)
    if (change := metric.change) is None:
        return "", "", "", *medians, cv, "", ""
    drawn = page.Drawing(lambda: drawings.draw_change(change, metric.verdict, scale))
    moved = words.change_of(change), words.interval_of(change), drawn
    return *moved, *medians, cv, words.known_percent(change.floor), words.mde_of(change)


def path_table(path: PathReport, labels: tuple[str, str]) -> tuple[page.Block, ...]:
    """Durations of the parts of a path, those with the largest change first."""
    segments = sorted(path.segments, key=lambda segment: -abs(segment.change_ns))
    scale = drawings.segment_scale(path)

    def row(segment: Segment) -> tuple[page.Cell, ...]:
        both = format_duration(segment.base_ns), format_duration(segment.head_ns)
        drawn = page.Drawing(lambda: drawings.draw_segment(segment, scale))
        return segment.name, *both, words.format_change(segment), f"{round(100 * segment.share)} %", drawn

    change, times = words.format_change(path.whole), map(format_duration, (path.whole.base_ns, path.whole.head_ns))
    shown = page.Table(
        title=f"Path {path.path}: {change}, {' → '.join(times)}",
        columns=(
            *page.names("segment"),
            *page.numbers(*labels, "change [interval]", "share"),
            *page.words("less, or more"),
        ),
        rows=tuple(map(row, segments[:_MOST_SEGMENTS])),
    )
    rest = tuple(f"{each.name}: {words.format_change(each)}" for each in segments[_MOST_SEGMENTS:])
    more = (page.Folded(f"{len(rest)} more segments of {path.path}", (page.Bullets(rest),)),) if rest else ()
    return (shown, *more)


def values_table(metric: MetricReport, samples: list[tuple[str, str, Sample]]) -> page.Table:
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
    start, goal, value = page.numbers("stack start"), page.names("goal"), page.numbers("value")
    columns = (*page.names("version and trial"), *start, *goal, *value)
    return page.Table(title=f"Values of {metric.label}", columns=columns, rows=tuple(rows))


def failures_table(versions: list[Version]) -> page.Table:
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


def differences_table(section: Section) -> page.Table:
    kinds = {DifferenceKind.ENVIRONMENT: "environment", DifferenceKind.SETTING: "the stack's setting"}
    rows = ((each.name, kinds[each.kind], each.base, each.head) for each in section.differences)
    return _prose("Differences other than the code", ("what", "kind", *section.labels), rows)


def versions_table(versions: list[Version]) -> page.Table:
    facts = (
        ("commit", *(each.commit or page.ABSENT for each in versions)),
        ("started", *(each.started_at for each in versions)),
        ("trials", *(f"{each.successes} of {each.trials} succeeded" for each in versions)),
        ("stack", *(each.stack for each in versions)),
        ("tracer", *(each.recorder for each in versions)),
        ("host class", *(each.host_class for each in versions)),
        ("events lost", *(str(each.discarded_events) for each in versions)),
    )
    return _prose("What was run", ("what", *(version.label for version in versions)), facts)


def _prose(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> page.Table:
    return page.Table(title=title, columns=page.names(*columns), rows=tuple(rows))


def _blocks(section: Section) -> Iterator[page.Block]:
    versions = [version for version in (section.base, section.head) if version is not None]
    measured = words.listed((*words.describe_measurement(section), *words.describe_details(section)))
    yield page.Text(words.describe_outcome(section), page.Tone.QUIET)
    yield from words.show_findings(section)
    if words.shown_metrics(section):
        yield page.Section("All metrics", (metrics_table(section), words.listed(words.describe_sources(section))))
    yield page.Section("Problem by problem", tuple(_problems(section)))
    yield page.Section("Where the time went", tuple(_paths(section)))
    yield page.Section("Failures", (failures_table(versions),))
    measured_metrics = (metric for metric in words.shown_metrics(section) if _samples(section, metric))
    yield page.Section("Trials", tuple(_metric(section, metric) for metric in measured_metrics))
    yield page.Section("What else differs", (differences_table(section),))
    yield page.Section("How it was measured", (versions_table(versions), measured) if versions else (measured,))


def _paths(section: Section) -> Iterator[page.Block]:
    moved = list(dict.fromkeys(path for _, path in words.moved_paths(section)))
    for path in moved:
        if path.segments:
            yield page.Drawing(partial(draw_path, path, section.labels))
        yield from path_table(path, section.labels)
    others = [path for path in section.paths if path not in moved]
    yield from (page.Folded(f"path {path.path}", path_table(path, section.labels)) for path in others if path.segments)


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


def _metric(section: Section, metric: MetricReport) -> page.Figure:
    samples = _samples(section, metric)
    is_interleaved = section.interleaving is not None
    return page.Figure(
        title=metric.label,
        badge=None if metric.verdict is None else words.badge_of(metric.verdict),
        drawings=(
            page.Drawing(lambda: drawings.draw_distribution(metric, samples)),
            page.Drawing(lambda: drawings.draw_timeline(metric, samples, is_interleaved=is_interleaved)),
        ),
        table=values_table(metric, samples),
    )


def _samples(section: Section, metric: MetricReport) -> list[tuple[str, str, Sample]]:
    found = (("base", section.base, metric.base), ("head", section.head, metric.head))
    return [(name, version.label, sample) for name, version, sample in found if version and sample]


def render(document: Document) -> Rendered:
    return html.render(compose_page(document))


def compose_page(document: Document) -> page.Page:
    numbered = enumerate(document.sections, 1)
    anchored = [(f"scenario-{number}", document.name_of(section), section) for number, section in numbered]
    sections = (
        page.Section(name, tuple(_blocks(section)), badge=words.badge_of(section.verdict), anchor=anchor)
        for anchor, name, section in anchored
    )
    return page.Page(
        title=words.title_of(document.stacks),
        badge=words.badge_of(document.verdict),
        setting=words.describe_setting(document),
        contents=_overview(anchored),
        blocks=(*sections, page.Section("How to read this", (page.Legend(_MEANINGS),))),
        made=f"{document.made_by} {document.made_at}".strip() or "pytest-ldos",
    )


def _overview(anchored: list[tuple[str, str, Section]]) -> page.Table:
    columns = page.names("scenario", "verdict", "trials", "in short")
    rows = (
        (page.Drawing(partial(html.link, f"#{anchor}", name)), *words.overview_row(section))
        for anchor, name, section in anchored
    )
    return page.Table(title="Scenarios and their verdicts", columns=columns, rows=tuple(rows))


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
