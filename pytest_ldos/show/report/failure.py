"""The message of a failed scenario test: everything needed to act, as on a terminal."""

from __future__ import annotations

from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page import terminal
from pytest_ldos.show.page.model import Column, Kind, Page, Table
from pytest_ldos.show.page.model import Section as Shown
from pytest_ldos.show.report import words
from pytest_ldos.show.report.document import Document, MetricReport, Section
from pytest_ldos.show.report.terminal import badge_by_name, listed

_QUIET: Final = frozenset({None, Verdict.PASSED, Verdict.SHOWN, Verdict.NOT_JUDGED, Verdict.NOT_COMPARABLE})
_COLUMNS: Final = (Column("", Kind.WORD), Column("", Kind.WORD))
_WIDTH: Final = 100


def render(document: Document) -> Rendered:
    """Verdict and reasons, each changed metric with its numbers, and locations of files."""
    page = Page(title="", blocks=tuple(map(_show_section, document.sections)))
    return Rendered(terminal.render(page, width=_WIDTH, color=False).rstrip("\n"))


def _show_section(section: Section) -> Shown:
    return Shown(
        f"scenario '{section.scenario}'",
        (
            listed(section.reasons),
            *(_show_metric(each) for each in section.metrics if each.verdict not in _QUIET and not _has_no_mde(each)),
            listed(
                (
                    *words.describe_sources(section),
                    *words.describe_paths(section),
                    *words.describe_measurement(section),
                    *words.describe_details(section),
                )
            ),
            listed(f"→ {each}" for each in section.advice),
        ),
        badge=None if section.verdict is None else badge_by_name(section.verdict),
        remark=words.describe_outcome(section),
    )


def _has_no_mde(metric: MetricReport) -> bool:
    """True if there is nothing to say about its change."""
    change = metric.change
    if change is None or not change.has_ratio:
        return change is None
    return metric.verdict is Verdict.INCONCLUSIVE and change.mde is None


def _show_metric(metric: MetricReport) -> Shown:
    assert metric.verdict is not None
    assert metric.change is not None
    change = metric.change
    rows = (
        ("median", f"{words.median_of(metric, metric.head)} (baseline {words.median_of(metric, metric.base)})"),
        ("change", f"{words.change_of(change)}, interval {words.interval_of(change)}"),
        ("reported from", f"{words.percent(change.floor)} on (floor)"),
        ("MDE", words.mde_of(change)),
        *(("regressed", each.words) for each in metric.aspects if each.is_regressed),
    )
    return Shown(
        f"{metric.name} {metric.title}", (Table(columns=_COLUMNS, rows=rows),), badge=badge_by_name(metric.verdict)
    )
