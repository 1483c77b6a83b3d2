"""The message of a failed scenario test: all that is needed to act, as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.document import Document, MetricReport, Section
from pytest_ldos.show.report.paths import describe_paths
from pytest_ldos.show.report.words import (
    change_of,
    describe_measurement,
    describe_sources,
    describe_success,
    interval_of,
    median_of,
    percent,
)

_QUIET = frozenset({None, Verdict.PASSED, Verdict.NOT_COMPARABLE})


def render(document: Document) -> Rendered:
    """Verdict and reasons, each changed metric with its numbers, and where things lie."""
    return Rendered("\n".join(one_line(line) for section in document.sections for line in _describe(section)))


def _describe(section: Section) -> Iterator[str]:
    yield f"scenario '{section.scenario}': {section.verdict} ({describe_success(section)})"
    yield from (f"  {reason}" for reason in section.reasons)
    for metric in section.metrics:
        if metric.verdict not in _QUIET and metric.change is not None and not _is_blind(metric):
            yield from _describe_metric(metric)
    sentences = (*describe_sources(section), *describe_paths(section), *describe_measurement(section))
    yield from (f"  {line}" for line in sentences)
    yield from (f"  → {line}" for line in section.advice)


def _is_blind(metric: MetricReport) -> bool:
    change = metric.change
    if change is None or change.is_from_zero:
        return False
    return metric.verdict is Verdict.INCONCLUSIVE and change.detectable is None


def _describe_metric(metric: MetricReport) -> Iterator[str]:
    assert metric.change is not None
    change = metric.change
    yield f"  {metric.name} {metric.title}: {metric.verdict}"
    yield f"    median            {median_of(metric, metric.head)} (baseline {median_of(metric, metric.base)})"
    yield f"    change            {change_of(change)}, interval {interval_of(change)}"
    yield f"    reported from     {percent(change.floor)} on (floor)"
    yield f"    could have seen   {percent(change.detectable)}"
