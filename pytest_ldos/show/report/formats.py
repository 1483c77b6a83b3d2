"""A report of verdicts in every format, of one machine or of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_ldos.base.text import Rendered
from pytest_ldos.judge.gate.verdict import Verdict, worst
from pytest_ldos.show.page.formats import Format, require_format
from pytest_ldos.show.report.document import Document


def render_as(document: Document, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """The document in a format; width and colour apply to a terminal only.

    Raises:
        Unavailable: see `require_format`.
    """
    require_format(kind)
    if kind is Format.HTML:
        from pytest_ldos.show.report.html import page  # noqa: PLC0415 - its library need not be installed

        return page.render(document)
    if kind is Format.TERMINAL:
        from pytest_ldos.show.report import terminal  # noqa: PLC0415

        return terminal.render(document, width=width, color=color)
    from pytest_ldos.show.report import json_text, markdown  # noqa: PLC0415

    return markdown.render(document) if kind is Format.MARKDOWN else json_text.render(document)


@dataclass(frozen=True)
class HostReport:
    """Report of one machine.

    Attributes:
        host_class: of its machine; empty if nothing could be measured.
        name: unique among the reports.
    """

    document: Document
    host_class: str
    name: str


def name_reports(documents: Sequence[Document], places: Sequence[str]) -> tuple[HostReport, ...]:
    """Names documents by host class, numbered within a class; a document without measurements is named by its place.

    Args:
        documents: results of the machines.
        places: location of each.
    """
    classes = [host_class_of(document) for document in documents]
    plain = [found or f"unknown host class ({place})" for found, place in zip(classes, places, strict=True)]
    several, seen = {name for name, count in Counter(plain).items() if count > 1}, Counter[str]()
    reports = []
    for document, host_class, name in zip(documents, classes, plain, strict=True):
        seen[name] += 1
        numbered = f"{name} ({seen[name]} of {plain.count(name)})" if name in several else name
        reports.append(HostReport(document, host_class, numbered))
    return tuple(reports)


def host_class_of(document: Document) -> str:
    """Host class of the first measured version; empty if there is none."""
    return next((section.head.host_class for section in document.sections if section.head is not None), "")


def worst_first(reports: Iterable[HostReport]) -> list[HostReport]:
    """The reports by severity of their verdict; equal ones in their order."""
    return sorted(reports, key=_rank)


def worst_of(reports: Iterable[HostReport]) -> Verdict | None:
    """The worst verdict of all machines; ``None`` if none was judged."""
    judged = [each.document.verdict for each in reports if each.document.verdict is not None]
    return worst(judged) if judged else None


def _rank(report: HostReport) -> int:
    verdict = report.document.verdict
    return 0 if verdict is None else -verdict.severity
