"""A document in GitHub's Markdown: for a job summary, or a comment on a pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.judge.gate.verdict import Verdict
from pytest_ldos.show.report.document import Document, MetricReport, Section
from pytest_ldos.show.report.host_reports import HostReport, worst_first, worst_of
from pytest_ldos.show.report.markdown_parts import (
    Link,
    Markdown,
    bullets,
    folded,
    heading,
    join,
    small,
    strong,
    table,
)
from pytest_ldos.show.report.markdown_parts import links as render_links
from pytest_ldos.show.report.paths import describe_paths
from pytest_ldos.show.report.words import (
    change_of,
    describe_measurement,
    describe_move,
    describe_setting,
    describe_sources,
    describe_success,
    describe_unseen,
    interval_of,
    median_of,
    moved_metrics,
    percent,
    summarize,
    told_metrics,
    verdict_word,
)

MARK: Final = Markdown("<!-- pytest-ldos report -->")
"""First line: by it a job finds the comment that it made before, and writes it anew."""

_LARGEST: Final = 60_000
"""Characters, of the 65 536 that a comment on GitHub may have."""

_MOST: Final = 12
"""Sentences of one list."""


def render(document: Document, *, links: Sequence[Link] = ()) -> Rendered:
    """Verdicts first, then each scenario; where it would be too long for a comment, without the details."""
    return _fitting(lambda details: _render(document, links, details=details))


def render_several(
    reports: Sequence[HostReport], *, links: Sequence[Link] = (), links_of: Mapping[str, Sequence[Link]] | None = None
) -> Rendered:
    """The verdict over all machines and a table of all first, then what each machine has, the worst first.

    Args:
        reports: what each machine measured.
        links: what belongs to all of them.
        links_of: what belongs to one, by the name of its report.
    """
    ordered = worst_first(reports)
    return _fitting(lambda details: _render_several(ordered, links, links_of or {}, details=details))


def _fitting(render_it: Callable[[bool], Rendered]) -> Rendered:
    whole = render_it(True)
    return whole if len(whole) <= _LARGEST else _cut(render_it(False))


def _cut(text: Rendered) -> Rendered:
    if len(text) <= _LARGEST:
        return text
    end = text.rfind("\n", 0, _LARGEST)
    return Rendered(f"{text[:end]}\n\n… the rest is left out: the report is too long for a comment.\n")


def _render(document: Document, links: Sequence[Link], *, details: bool) -> Rendered:
    return join(
        [
            MARK,
            heading(2, _signed("ldos: ", document.verdict)),
            table(_OVERVIEW, map(_overview, document.sections)),
            render_links(links),
            *(part for section in document.sections for part in _render_section(section, details=details)),
            bullets(describe_setting(document), most=_MOST),
            *_render_end([document], details=details),
        ]
    )


def _render_several(
    reports: Sequence[HostReport], links: Sequence[Link], links_of: Mapping[str, Sequence[Link]], *, details: bool
) -> Rendered:
    rows = ((each.name, *_overview(section)) for each in reports for section in each.document.sections)
    hosts = (_render_host(each, links_of.get(each.name, ()), details=details) for each in reports)
    return join(
        [
            MARK,
            heading(2, _signed("ldos: ", worst_of(reports))),
            table(("host class", *_OVERVIEW), rows),
            render_links(links),
            *(part for host in hosts for part in host),
            *_render_end([each.document for each in reports], details=details),
        ]
    )


def _render_host(report: HostReport, links: Sequence[Link], *, details: bool) -> Iterator[Markdown]:
    yield heading(2, _signed(f"{report.name}: ", report.document.verdict))
    yield render_links(links)
    for section in report.document.sections:
        yield from _render_section(section, details=details)
    yield bullets(describe_setting(report.document), most=_MOST)


def _render_end(documents: Sequence[Document], *, details: bool) -> Iterator[Markdown]:
    if not details:
        yield Markdown("The details are left out: the report would be too long for a comment.")
    makers = dict.fromkeys(f"{each.made_by}, {each.made_at}" for each in documents if each.made_by)
    if makers:
        yield small(["; ".join(makers)])


def _signed(before: str, verdict: Verdict | None) -> str:
    """A verdict's sign, then words: the sign only repeats them."""
    words = f"{before}{verdict_word(verdict)}"
    return words if verdict is None else f"{verdict.tone.emoji} {words}"


_OVERVIEW: Final = ("scenario", "verdict", "trials", "in short")


def _overview(section: Section) -> tuple[str, ...]:
    return section.scenario, _signed("", section.verdict), describe_success(section), summarize(section)


def _render_section(section: Section, *, details: bool) -> Iterator[Markdown]:
    yield heading(3, f"{section.scenario}: {verdict_word(section.verdict)}")
    yield bullets(section.reasons, most=_MOST)
    moved = [*map(describe_move, moved_metrics(section)), *describe_paths(section)]
    yield from _titled("What moved", moved)
    yield from _titled("What to do", section.advice)
    yield from _titled("What could not have been seen", describe_unseen(section))
    yield from _titled("More trials would help", section.undecided)
    yield table(("metric", *section.labels, *_COMPARED), map(_row, told_metrics(section)))
    if details:
        yield folded("Details", [*describe_sources(section), *describe_measurement(section)])


def _titled(title: str, lines: Iterable[str]) -> Iterator[Markdown]:
    found = list(lines)
    if found:
        yield strong(title)
        yield bullets(found, most=_MOST)


_COMPARED: Final = ("change", "interval", "detectable", "verdict")


def _row(metric: MetricReport) -> tuple[str, ...]:
    change = metric.change
    numbers = ("", "", "") if change is None else (change_of(change), interval_of(change), percent(change.detectable))
    base = "" if metric.base is None else median_of(metric, metric.base)
    verdict = "" if metric.verdict is None else _signed("", metric.verdict)
    return f"{metric.name} {metric.title}", base, median_of(metric, metric.head), *numbers, verdict
