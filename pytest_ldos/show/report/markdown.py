"""A document in GitHub's Markdown: for a job summary, or a comment on a pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.show.page import markdown
from pytest_ldos.show.page import model as page
from pytest_ldos.show.page.markdown import Markdown, join
from pytest_ldos.show.report import words
from pytest_ldos.show.report.document import Document, MetricReport, Section, worst_of
from pytest_ldos.show.report.json_text import HostReport, worst_first

MARK: Final = Markdown("<!-- pytest-ldos report -->")
"""First line, by which a job finds its earlier comment to update it."""

_LARGEST: Final = 60_000  # most characters; comments on GitHub may have 65 536
_MOST: Final = 12  # most sentences of one list


_Links = Sequence[page.Link]


def render(document: Document, *, links: _Links = ()) -> Rendered:
    """Verdicts first, then each scenario; without details if it is too long for a comment."""
    return _fitting(lambda details: [_page(document, links, details=details)])


def render_several(
    reports: Sequence[HostReport], *, links: _Links = (), links_of: Mapping[str, _Links] | None = None
) -> Rendered:
    """The overall verdict and a table of all machines, then each machine's results, the worst first.

    `links` are for all machines, `links_of` for one machine, by the name of its report.
    """
    ordered = worst_first(reports)
    return _fitting(lambda details: _pages(ordered, links, links_of or {}, details=details))


def _fitting(compose: Callable[[bool], Iterable[page.Page]]) -> Rendered:
    text = Rendered("")
    for details in (True, False):
        text = join([MARK, *(Markdown(markdown.render(each).strip()) for each in compose(details))])
        if len(text) <= _LARGEST:
            return text
    end = text.rfind("\n", 0, _LARGEST)
    return Rendered(f"{text[:end]}\n\n… the rest is left out: the report is too long for a comment.\n")


def _page(document: Document, links: _Links, *, details: bool) -> page.Page:
    return page.Page(
        title=words.title_of(document.stacks),
        badge=words.badge_of(document.verdict),
        contents=page.Table(columns=_OVERVIEW, rows=tuple(_overview(document))),
        blocks=(page.Links(tuple(links)), *_sections(document, details=details), *_end(details=details)),
        setting=words.describe_setting(document),
        made=_made(document),
    )


def _pages(
    reports: Sequence[HostReport], links: _Links, links_of: Mapping[str, _Links], *, details: bool
) -> Iterator[page.Page]:
    rows = ((each.name, *row) for each in reports for row in _overview(each.document))
    yield page.Page(
        title=words.title_of(stack for each in reports for stack in each.document.stacks),
        badge=words.badge_of(worst_of(each.document.verdict for each in reports)),
        contents=page.Table(columns=(*page.words("host class"), *_OVERVIEW), rows=tuple(rows)),
        blocks=(page.Links(tuple(links)), *_end(details=details)),
    )
    for each in reports:
        yield page.Page(
            title=f"{each.name}:",
            badge=words.badge_of(each.document.verdict),
            blocks=(page.Links(tuple(links_of.get(each.name, ()))), *_sections(each.document, details=details)),
            setting=words.describe_setting(each.document),
            made=_made(each.document),
        )


def _sections(document: Document, *, details: bool) -> Iterator[page.Section]:
    for each in document.sections:
        yield page.Section(
            f"{document.name_of(each)}: {words.verdict_word(each.verdict)}", tuple(_blocks(each, details=details))
        )


def _end(*, details: bool) -> tuple[page.Text, ...]:
    return () if details else (page.Text("The details are left out: the report would be too long for a comment."),)


def _made(document: Document) -> str:
    return f"{document.made_by}, {document.made_at}" if document.made_by else ""


_OVERVIEW: Final = page.words("scenario", "verdict", "trials", "in short")


def _overview(document: Document) -> Iterator[tuple[page.Cell, ...]]:
    for each in document.sections:
        yield document.name_of(each), *words.overview_row(each)


def _blocks(section: Section, *, details: bool) -> Iterator[page.Block]:
    yield from words.show_findings(section, most=_MOST)
    numbers = page.numbers(*section.labels, "change", "interval", "MDE")
    columns = (*page.names("metric"), *numbers, *page.words("verdict"))
    yield page.Table(columns=columns, rows=tuple(map(_row, words.shown_metrics(section))))
    if details:
        lines = (
            *words.describe_sources(section),
            *words.describe_measurement(section),
            *words.describe_details(section),
        )
        yield page.Folded("Details", (page.Bullets(lines),))


def _row(metric: MetricReport) -> tuple[page.Cell, ...]:
    base = "" if metric.base is None else words.median_of(metric, metric.base)
    return (
        metric.label,
        base,
        words.median_of(metric, metric.head),
        *words.numbers_of(metric.change),
        words.badge_of_metric(metric),
    )
