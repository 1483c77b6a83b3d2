"""Page of verdicts with drawings and tables of each scenario."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import htpy as h

from pytest_ldos.base.text import Rendered, format_duration, format_quantity
from pytest_ldos.show.page import html
from pytest_ldos.show.page.html import untrusted_text
from pytest_ldos.show.page.model import (
    ABSENT,
    Badge,
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
from pytest_ldos.show.report.findings import badge_of, badge_of_metric, show_findings
from pytest_ldos.show.report.html.drawings import (
    draw_change,
    draw_distribution,
    draw_path,
    draw_scale,
    draw_segment,
    draw_timeline,
    scale_of,
    segment_scale,
)
from pytest_ldos.show.report.plots.chart import Axis
from pytest_ldos.show.report.words import (
    change_of,
    describe_details,
    describe_measurement,
    describe_outcome,
    describe_setting,
    describe_sources,
    describe_success,
    format_change,
    interval_of,
    mde_of,
    median_of,
    moved_paths,
    percent,
    shown_metrics,
    summarize,
    title_of,
)

_MOST_SEGMENTS = 8


def metrics_table(section: Section) -> Table:
    """Every metric with its numbers; with a base, changes and their intervals."""
    if any(metric.change is not None or metric.incomparable for metric in section.metrics):
        return _compared(section)
    rows = ((_name(metric), median_of(metric, metric.head), *_variation(metric.head)) for metric in section.metrics)
    columns = (Column("metric", Kind.NAME), *map(Column, ("median", "CV", "CV adjusted")))
    return Table(title=f"Metrics of scenario {section.scenario}", columns=columns, rows=tuple(rows))


def _variation(sample: Sample | None) -> tuple[str, str]:
    return (percent(None), percent(None)) if sample is None else (percent(sample.cv), percent(sample.adjusted_cv))


def _compared(section: Section) -> Table:
    scale = scale_of(metric.change for metric in section.metrics if metric.change is not None)
    columns = (
        Column("metric", Kind.NAME),
        Column("verdict", Kind.WORD),
        *map(Column, ("change", "interval")),
        Column("interval, drawn", Kind.WORD, drawing=Drawing(lambda: draw_scale(scale))),
        *map(Column, (*section.labels, "CV", "floor", "MDE")),
    )
    rows = ((_name(metric), badge_of_metric(metric), *_numbers(metric, scale)) for metric in shown_metrics(section))
    title = f"Metrics of scenario {section.scenario}, and their change"
    return Table(title=title, columns=columns, rows=tuple(rows))


def _numbers(metric: MetricReport, scale: Axis) -> tuple[Cell, ...]:
    cv = percent(None if metric.head is None else metric.head.cv)
    medians = median_of(metric, metric.base), median_of(metric, metric.head)
    change = metric.change
    if change is None:
        return "", "", "", *medians, cv, "", ""
    drawn = Drawing(lambda: draw_change(change, metric.verdict, scale))
    moved = change_of(change), interval_of(change), drawn
    return *moved, *medians, cv, percent(change.floor), mde_of(change)


def verdict_of(metric: MetricReport) -> Badge | None:
    """A metric's verdict; ``None`` if it was not compared."""
    return None if metric.verdict is None else badge_of(metric.verdict)


def _name(metric: MetricReport) -> str:
    return f"{metric.name} {metric.title}"


def path_table(path: PathReport, labels: tuple[str, str]) -> tuple[Block, ...]:
    """Durations of the parts of a path, those with the largest change first."""
    segments = sorted(path.segments, key=lambda segment: -abs(segment.change_ns))
    scale = segment_scale(path)
    whole = f"{path.path}: {format_change(path.whole)}, {_from_to(path.whole)}"
    shown = Table(
        title=f"Path {whole}",
        columns=(
            Column("segment", Kind.NAME),
            *map(Column, (*labels, "change [interval]", "share")),
            Column("less, or more", Kind.WORD),
        ),
        rows=tuple(_segment_row(each, scale) for each in segments[:_MOST_SEGMENTS]),
    )
    rest = tuple(f"{each.name}: {format_change(each)}" for each in segments[_MOST_SEGMENTS:])
    more = (Folded(f"{len(rest)} more segments of {path.path}", (Bullets(rest),)),) if rest else ()
    return (shown, *more)


def _segment_row(segment: Segment, scale: Axis) -> tuple[Cell, ...]:
    times = format_duration(segment.base_ns), format_duration(segment.head_ns)
    drawn = Drawing(lambda: draw_segment(segment, scale))
    return segment.name, *times, format_change(segment), f"{round(100 * segment.share)} %", drawn


def _from_to(segment: Segment) -> str:
    return f"{format_duration(segment.base_ns)} → {format_duration(segment.head_ns)}"


def values_table(metric: MetricReport, samples: list[tuple[str, str, Sample]]) -> Table:
    """The numbers in a metric's drawings."""
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
    """Ways in which trials failed."""
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
    """Differences between the versions other than the code."""
    kinds = {DifferenceKind.ENVIRONMENT: "environment", DifferenceKind.SETTING: "the stack's setting"}
    rows = ((each.name, kinds[each.kind], each.base, each.head) for each in section.differences)
    return _prose("Differences other than the code", ("what", "kind", *section.labels), rows)


def versions_table(versions: list[Version]) -> Table:
    """Facts about each measured version."""
    return _prose("What was run", ("what", *(version.label for version in versions)), _facts(versions))


def _prose(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    return Table(title=title, columns=tuple(Column(each, Kind.NAME) for each in columns), rows=tuple(rows))


def _facts(versions: list[Version]) -> Iterator[tuple[str, ...]]:
    yield "commit", *(each.commit or ABSENT for each in versions)
    yield "started", *(each.started_at for each in versions)
    yield "trials", *(f"{each.successes} of {each.trials} succeeded" for each in versions)
    yield "stack", *(each.stack for each in versions)
    yield "tracer", *(each.recorder for each in versions)
    yield "host class", *(each.host_class for each in versions)
    yield "events lost", *(str(each.discarded_events) for each in versions)


def show_section(section: Section, *, name: str, anchor: str) -> Shown:
    """The section of a scenario."""
    return Shown(name, tuple(_blocks(section)), badge=badge_of(section.verdict), anchor=anchor)


def _blocks(section: Section) -> Iterator[Block]:
    versions = [version for version in (section.base, section.head) if version is not None]
    measured = _listed((*describe_measurement(section), *describe_details(section)))
    yield Text(describe_outcome(section), Tone.QUIET)
    yield from show_findings(section)
    if shown_metrics(section):
        yield Shown("All metrics", (metrics_table(section), _listed(describe_sources(section))))
    yield Shown("Where the time went", tuple(_paths(section)))
    yield Shown("Failures", (failures_table(versions),))
    yield Shown("Trials", tuple(_trials(section)))
    yield Shown("What else differs", (differences_table(section),))
    yield Shown("How it was measured", (versions_table(versions), measured) if versions else (measured,))


def _listed(lines: Iterable[str]) -> Bullets:
    return Bullets(tuple(lines))


def _paths(section: Section) -> Iterator[Block]:
    """Sections of changed paths; others are folded."""
    moved = list(dict.fromkeys(path for _, path in moved_paths(section)))
    for path in moved:
        if path.segments:
            yield _waterfall(path, section.labels)
        yield from path_table(path, section.labels)
    others = [path for path in section.paths if path not in moved]
    yield from (Folded(f"path {path.path}", path_table(path, section.labels)) for path in others if path.segments)


def _waterfall(path: PathReport, labels: tuple[str, str]) -> Drawing:
    return Drawing(lambda: draw_path(path, labels))


def _trials(section: Section) -> Iterator[Figure]:
    yield from (_metric(section, metric) for metric in shown_metrics(section) if _samples(section, metric))


def _metric(section: Section, metric: MetricReport) -> Figure:
    """Both drawings of a metric, and the numbers in them."""
    samples = _samples(section, metric)
    is_interleaved = section.interleaving is not None
    return Figure(
        title=f"{metric.name} {metric.title}",
        badge=verdict_of(metric),
        drawings=(
            Drawing(lambda: draw_distribution(metric, samples)),
            Drawing(lambda: draw_timeline(metric, samples, is_interleaved=is_interleaved)),
        ),
        table=values_table(metric, samples),
    )


def _samples(section: Section, metric: MetricReport) -> list[tuple[str, str, Sample]]:
    """Version, label and values; the base first."""
    found = (("base", section.base, metric.base), ("head", section.head, metric.head))
    return [(name, version.label, sample) for name, version, sample in found if version and sample]


def render(document: Document) -> Rendered:
    """The page as text."""
    return html.render(compose_page(document))


def compose_page(document: Document) -> Page:
    """An overview of all scenarios with links, then a section for each."""
    anchored = [
        (f"scenario-{number}", document.name_of(section), section)
        for number, section in enumerate(document.sections, 1)
    ]
    return Page(
        title=title_of(document.stacks),
        badge=badge_of(document.verdict),
        setting=describe_setting(document),
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
            (_way_to(anchor, name), badge_of(section.verdict), describe_success(section), summarize(section))
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
