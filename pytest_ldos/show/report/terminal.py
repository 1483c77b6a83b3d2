"""A document for a terminal or a log, and the message of a failed test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.page import model as page
from pytest_ldos.show.page import terminal
from pytest_ldos.show.report import words
from pytest_ldos.show.report.document import Document, MetricReport, Section


def render(document: Document, *, width: int, color: bool, setting: bool = True, details: bool = True) -> Rendered:
    """The whole document, with stack, tracer and host (`setting`), and with spread, added trials, … (`details`).

    Tables are at most `width` wide, other lines are not broken.
    """
    above = words.describe_setting(document) if setting else ()
    blocks: list[page.Block] = [page.Text(each, page.Tone.QUIET, is_whole=True) for each in above]
    blocks += (_show_section(each, document.name_of(each), details=details) for each in document.sections)
    return terminal.render(page.Page(title="", blocks=tuple(blocks)), width=width, color=color)


def _show_section(section: Section, name: str, *, details: bool) -> page.Section:
    return page.Section(
        name,
        (
            listed(section.reasons),
            listed(words.describe_paths(section)),
            listed(words.describe_cases(section)),
            listed((f"→ {each}" for each in section.advice), page.Tone.STRONG),
            page.Table(columns=_COLUMNS, rows=tuple(map(_row, words.shown_metrics(section)))),
            words.cases_table(section, section.of_suite, most=10),
            listed(words.describe_sources(section), page.Tone.QUIET),
            listed(words.describe_gaps(section), page.Tone.DOUBT),
            listed(words.describe_measurement(section), page.Tone.QUIET),
            listed(words.describe_details(section) if details else (), page.Tone.QUIET),
        ),
        badge=words.badge_by_name(section.verdict),
        remark=words.describe_outcome(section),
    )


def render_problems(section: Section, *, width: int, color: bool) -> Rendered:
    """All planning problems, below a line on how many were solved, and why no more is known."""
    why = section.reasons if section.verdict is Verdict.INVALID else ()
    blocks = (listed([*why, *words.describe_cases(section)]), words.cases_table(section, section.of_suite))
    return terminal.render(page.Page(title="", blocks=blocks), width=width, color=color)


def listed(lines: Iterable[str], tone: page.Tone = page.Tone.PLAIN) -> page.Bullets:
    """Sentences that are never broken, because they may contain paths to copy."""
    return page.Bullets(tuple(lines), tone, is_whole=True)


_RANKS: Final = {"median": 2, "CV": 6, "adjusted": 7, "baseline": 5, "change": 1, "interval": 3, "MDE": 4}
_COLUMNS: Final = (
    page.Column("", page.Kind.WORD),
    page.Column("", page.Kind.WORD, rank=8),
    *(page.Column(title, rank=rank) for title, rank in _RANKS.items()),
    page.Column("verdict", page.Kind.WORD, rank=1),
)


def _row(metric: MetricReport) -> tuple[page.Cell, ...]:
    cvs = (None, None) if metric.head is None else (metric.head.cv, metric.head.adjusted_cv)
    return (
        metric.name,
        metric.title,
        words.median_of(metric, metric.head),
        words.known_percent(cvs[0]),
        "" if cvs[1] is None else words.known_percent(cvs[1]),
        "" if metric.change is None else words.median_of(metric, metric.base),
        *words.numbers_of(metric.change),
        words.badge_of_metric(metric, by_name=True),
    )


_QUIET: Final = frozenset({None, Verdict.PASSED, Verdict.SHOWN, Verdict.NOT_JUDGED, Verdict.NOT_COMPARABLE})
_WIDTH: Final = 100  # columns of a failure's message, which pytest prints without knowing the terminal


def render_failure(document: Document) -> Rendered:
    """A failed test's message: verdict and reasons, each changed metric with its numbers, and locations of files."""
    shown = page.Page(title="", blocks=tuple(map(_show_failure, document.sections)))
    return Rendered(terminal.render(shown, width=_WIDTH, color=False).rstrip("\n"))


def _show_failure(section: Section) -> page.Section:
    return page.Section(
        f"scenario '{section.scenario}'",
        (
            listed(section.reasons),
            *(_show_metric(each) for each in section.metrics if each.verdict not in _QUIET and not _has_no_mde(each)),
            listed(
                (
                    *words.describe_sources(section),
                    *words.describe_paths(section),
                    *words.describe_cases(section),
                    *words.describe_measurement(section),
                    *words.describe_details(section),
                )
            ),
            listed(f"→ {each}" for each in section.advice),
        ),
        badge=words.badge_by_name(section.verdict),
        remark=words.describe_outcome(section),
    )


def _has_no_mde(metric: MetricReport) -> bool:
    """True if there is nothing to say about its change."""
    change = metric.change
    if change is None or not change.has_ratio:
        return change is None
    return metric.verdict is Verdict.INCONCLUSIVE and change.mde is None


def _show_metric(metric: MetricReport) -> page.Section:
    assert metric.verdict is not None
    assert metric.change is not None
    change = metric.change
    rows = (
        ("median", f"{words.median_of(metric, metric.head)} (baseline {words.median_of(metric, metric.base)})"),
        ("change", f"{words.change_of(change)}, interval {words.interval_of(change)}"),
        ("reported from", f"{words.known_percent(change.floor)} on (floor)"),
        ("MDE", words.mde_of(change)),
        *(("regressed", each.words) for each in metric.aspects if each.is_regressed),
    )
    table = page.Table(columns=page.words("", ""), rows=rows)
    return page.Section(metric.label, (table,), badge=words.badge_by_name(metric.verdict))
