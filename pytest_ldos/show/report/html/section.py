"""One scenario: its verdict, what moved and what to do first, then what can be asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_ldos.show.page.model import Block, Bullets, Drawing, Figure, Folded, Text, Tone
from pytest_ldos.show.page.model import Section as Shown
from pytest_ldos.show.report.badges import badge_of
from pytest_ldos.show.report.document import MetricReport, PathReport, Sample, Section
from pytest_ldos.show.report.findings import show_findings
from pytest_ldos.show.report.html.distribution import draw_distribution
from pytest_ldos.show.report.html.tables import (
    differences_table,
    failures_table,
    metrics_table,
    path_table,
    values_table,
    verdict_of,
    versions_table,
)
from pytest_ldos.show.report.html.timeline import draw_timeline
from pytest_ldos.show.report.html.waterfall import draw_path
from pytest_ldos.show.report.paths import moved_paths
from pytest_ldos.show.report.words import (
    describe_details,
    describe_measurement,
    describe_outcome,
    describe_sources,
    shown_metrics,
)


def show_section(section: Section, *, name: str, anchor: str) -> Shown:
    """A scenario below a heading of its own."""
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
    """Paths that moved are open, others are there when they are asked for."""
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
    """Both drawings of a metric, and their numbers."""
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
