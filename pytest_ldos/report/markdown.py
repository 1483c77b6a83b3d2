"""A document in GitHub's Markdown: for a job summary, or a comment on a pull request.

What other programs named is shown as they wrote it and can do nothing else: no link, no mention, no
table cell of its own, no HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.errors import ConfigurationError
from pytest_ldos.gate.verdict import Verdict
from pytest_ldos.report.document import Document, MetricReport, Section
from pytest_ldos.report.host_reports import HostReport, worst_first, worst_of
from pytest_ldos.report.paths import describe_paths
from pytest_ldos.report.words import (
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
    verdict_word,
)
from pytest_ldos.text import one_line

MARK: Final = "<!-- pytest-ldos report -->"
"""First line: by it a job finds the comment that it made before, and writes it anew."""

_LARGEST: Final = 60_000
"""Characters, of the 65 536 that a comment on GitHub may have."""

_LONGEST: Final = 600
"""Characters of one foreign sentence."""

_MOST: Final = 12
"""Sentences of one list."""

_SIGNS: Final = {
    Verdict.PASSED: "✅",
    Verdict.IMPROVED: "✅",
    Verdict.REGRESSED: "❌",
    Verdict.INVALID: "❌",
    Verdict.INFRA: "❌",
}
_UNDECIDED: Final = "⚠️"

_ACTIVE: Final = re.compile(
    r"""[\\`*_\[\]~|]      # code, emphasis, links, cells
    |:(?=\S)|(?<=www)\.    # what GitHub makes a link of
    |^[-+](?=[-\s]|$)     # lists and rules
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NUMBERED: Final = re.compile(r"^(\d+)([.)])(?=\s|$)")
_REFERENCE: Final = re.compile(r"\b(gh-)(?=\d)", re.IGNORECASE)
"""GitHub makes links of these after it has read Markdown, so that no backslash keeps it from that."""

_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;", "@": "@&#8288;", "#": "&#35;&#8288;"}


_URL: Final = re.compile(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:/[A-Za-z0-9._~/?=&%#-]*)?")


@dataclass(frozen=True)
class Link:
    """Where more is to be had.

    Raises:
        ConfigurationError: `url` is no address of the web that could stand in Markdown as it is.
    """

    title: str
    url: str

    def __post_init__(self) -> None:
        if _URL.fullmatch(self.url) is None:
            raise ConfigurationError(f"{self.url!r} is no address", remedy="one that begins with https://")


def render(document: Document, *, links: Sequence[Link] = ()) -> str:
    """Verdicts first, then each scenario; where it would be too long for a comment, without the details."""
    return _fitting(lambda details: _render(document, links, details=details))


def render_several(
    reports: Sequence[HostReport], *, links: Sequence[Link] = (), links_of: Mapping[str, Sequence[Link]] | None = None
) -> str:
    """The verdict over all machines and a table of all first, then what each machine has, the worst first.

    Args:
        reports: what each machine measured.
        links: what belongs to all of them.
        links_of: what belongs to one, by the name of its report.
    """
    ordered = worst_first(reports)
    return _fitting(lambda details: _render_several(ordered, links, links_of or {}, details=details))


def escape(text: str) -> str:
    """Foreign text as one line that means nothing to Markdown, HTML or GitHub."""
    line = one_line(text).strip()
    shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
    inactive = _NUMBERED.sub(r"\1\\\2", _ACTIVE.sub(r"\\\g<0>", shown))
    without_html = "".join(_ENTITIES.get(character, character) for character in inactive)
    return _REFERENCE.sub(r"\1&#8288;", without_html)


def _fitting(render_it: Callable[[bool], str]) -> str:
    whole = render_it(True)
    return whole if len(whole) <= _LARGEST else _cut(render_it(False))


def _cut(text: str) -> str:
    if len(text) <= _LARGEST:
        return text
    end = text.rfind("\n", 0, _LARGEST)
    return f"{text[:end]}\n\n… the rest is left out: the report is too long for a comment.\n"


def _render(document: Document, links: Sequence[Link], *, details: bool) -> str:
    parts = [MARK, f"## {_signed('ldos: ', document.verdict)}"]
    parts.append(_table(_OVERVIEW, map(_overview, document.sections)))
    parts.append(_render_links(links))
    for section in document.sections:
        parts += _render_section(section, details=details)
    parts.append("\n".join(_list(describe_setting(document))))
    parts += _render_end([document], details=details)
    return _join(parts)


def _render_several(
    reports: Sequence[HostReport], links: Sequence[Link], links_of: Mapping[str, Sequence[Link]], *, details: bool
) -> str:
    parts = [MARK, f"## {_signed('ldos: ', worst_of(reports))}"]
    rows = ((escape(each.name), *_overview(section)) for each in reports for section in each.document.sections)
    parts.append(_table(("host class", *_OVERVIEW), rows))
    parts.append(_render_links(links))
    for each in reports:
        parts += _render_host(each, links_of.get(each.name, ()), details=details)
    parts += _render_end([each.document for each in reports], details=details)
    return _join(parts)


def _render_host(report: HostReport, links: Sequence[Link], *, details: bool) -> Iterator[str]:
    yield f"## {_signed(f'{escape(report.name)}: ', report.document.verdict)}"
    yield _render_links(links)
    for section in report.document.sections:
        yield from _render_section(section, details=details)
    yield "\n".join(_list(describe_setting(report.document)))


def _render_end(documents: Sequence[Document], *, details: bool) -> Iterator[str]:
    if not details:
        yield "The details are left out: the report would be too long for a comment."
    makers = dict.fromkeys(f"{each.made_by}, {each.made_at}" for each in documents if each.made_by)
    if makers:
        yield f"<sub>{'; '.join(map(escape, makers))}</sub>"


def _render_links(links: Sequence[Link]) -> str:
    return " · ".join(f"[{escape(link.title)}]({link.url})" for link in links)


def _join(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _signed(before: str, verdict: Verdict | None) -> str:
    """A verdict's sign, then words: the sign only repeats them."""
    words = f"{before}{verdict_word(verdict)}"
    return words if verdict is None else f"{_SIGNS.get(verdict, _UNDECIDED)} {words}"


_OVERVIEW: Final = ("scenario", "verdict", "trials", "in short")


def _overview(section: Section) -> tuple[str, ...]:
    trials = escape(describe_success(section))
    return escape(section.scenario), _signed("", section.verdict), trials, escape(summarize(section))


def _render_section(section: Section, *, details: bool) -> Iterator[str]:
    yield f"### {escape(section.scenario)}: {verdict_word(section.verdict)}"
    yield "\n".join(_list(section.reasons))
    moved = [*map(describe_move, moved_metrics(section)), *describe_paths(section)]
    yield from _titled("What moved", moved)
    yield from _titled("What to do", section.advice)
    yield from _titled("What could not have been seen", describe_unseen(section))
    yield from _titled("More trials would help", section.undecided)
    if section.metrics:
        titles = ("metric", *map(escape, section.labels), *_COMPARED)
        yield _table(titles, (_row(metric) for metric in section.metrics))
    if details:
        yield from _fold("Details", [*describe_sources(section), *describe_measurement(section)])


def _titled(title: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield f"**{title}**"
        yield "\n".join(_list(found))


def _list(lines: Sequence[str]) -> Iterator[str]:
    yield from (f"- {escape(line)}" for line in lines[:_MOST])
    if len(lines) > _MOST:
        yield f"- … and {len(lines) - _MOST} more"


def _fold(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"<details><summary>{title}</summary>"
        yield "\n".join(f"- {escape(line)}" for line in lines)
        yield "</details>"


_COMPARED: Final = ("change", "interval", "detectable", "verdict")


def _row(metric: MetricReport) -> tuple[str, ...]:
    change = metric.change
    numbers = ("", "", "") if change is None else (change_of(change), interval_of(change), percent(change.detectable))
    base = "" if metric.base is None else median_of(metric, metric.base)
    verdict = "" if metric.verdict is None else _signed("", metric.verdict)
    cells = (f"{metric.name} {metric.title}", base, median_of(metric, metric.head), *numbers)
    return *map(escape, cells), verdict


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
