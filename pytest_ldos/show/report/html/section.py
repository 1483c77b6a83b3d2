"""One scenario: its verdict, what moved and what to do first, then what can be asked for."""

from __future__ import annotations

from collections.abc import Iterator

import htpy as h
from htpy import Node

from pytest_ldos.show.report.document import MetricReport, Sample, Section
from pytest_ldos.show.report.html.distribution import draw_distribution
from pytest_ldos.show.report.html.elements import badge, bullet_list, folded, said
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
from pytest_ldos.show.report.paths import describe_paths, moved_paths
from pytest_ldos.show.report.words import (
    describe_measurement,
    describe_move,
    describe_sources,
    describe_success,
    describe_unseen,
    moved_metrics,
    told_metrics,
)


def render_section(section: Section, anchor: str) -> Node:
    """A scenario below a heading of its own."""
    heading = h.h2(id=anchor)[said(section.scenario), " ", badge(section.verdict)]
    return h.section(aria_labelledby=anchor)[heading, h.p(".success")[describe_success(section)], list(_parts(section))]


def _parts(section: Section) -> Iterator[Node]:
    yield bullet_list(section.reasons)
    moved = (*map(describe_move, moved_metrics(section)), *describe_paths(section))
    yield from _titled("What moved", bullet_list(moved))
    yield from _titled("What to do", bullet_list(section.advice))
    yield from _titled("What could not have been seen", bullet_list(describe_unseen(section)))
    yield from _titled("More trials would help", bullet_list(section.undecided))
    if told_metrics(section):
        yield from _titled("All metrics", [metrics_table(section), bullet_list(describe_sources(section))])
    yield from _titled("Where the time went", list(_paths(section)))
    yield from _titled("Failures", _failures(section))
    yield from _titled("Trials", list(_trials(section)))
    yield from _titled("What else differs", differences_table(section) if section.differences else None)
    yield from _titled("How it was measured", _measurement(section))


def _titled(title: str, content: Node) -> Iterator[Node]:
    if content is not None and content != []:
        yield h.h3[title]
        yield content


def _paths(section: Section) -> Iterator[Node]:
    """Paths that moved are open, others are there when they are asked for."""
    moved = list(dict.fromkeys(path for _, path in moved_paths(section)))
    yield from (path_table(path, section.labels) for path in moved)
    others = [path for path in section.paths if path not in moved]
    yield from (folded(f"path {path.path}", path_table(path, section.labels)) for path in others if path.segments)


def _failures(section: Section) -> Node:
    versions = [version for version in (section.base, section.head) if version is not None and version.failures]
    return failures_table(versions) if versions else None


def _trials(section: Section) -> Iterator[Node]:
    yield from (_metric(section, metric) for metric in told_metrics(section) if metric.head is not None)


def _metric(section: Section, metric: MetricReport) -> Node:
    """Both drawings of a metric, and their numbers."""
    samples = _samples(section, metric)
    is_interleaved = section.interleaving is not None
    return h.figure(".metric")[
        h.figcaption[h.h4[said(metric.name), " ", said(metric.title), " ", verdict_of(metric)]],
        h.div(".drawings")[
            draw_distribution(metric, samples), draw_timeline(metric, samples, is_interleaved=is_interleaved)
        ],
        folded(f"numbers of {metric.name}", values_table(metric, samples)),
    ]


def _samples(section: Section, metric: MetricReport) -> list[tuple[str, str, Sample]]:
    """Version, label and values; the base first."""
    found = (("base", section.base, metric.base), ("head", section.head, metric.head))
    return [(name, version.label, sample) for name, version, sample in found if version and sample]


def _measurement(section: Section) -> Node:
    versions = [version for version in (section.base, section.head) if version is not None]
    lines = bullet_list(describe_measurement(section))
    return [versions_table(versions) if versions else None, lines] if versions or lines else None
