"""Page of verdicts with drawings."""

from __future__ import annotations

from typing import Final

import htpy as h

from pytest_ldos.base.text import Rendered
from pytest_ldos.show.page import html
from pytest_ldos.show.page.html_parts import said
from pytest_ldos.show.page.model import Column, Drawing, Kind, Legend, Page, Table
from pytest_ldos.show.page.model import Section as Shown
from pytest_ldos.show.report.badges import badge_of
from pytest_ldos.show.report.document import Document, Section
from pytest_ldos.show.report.html.section import show_section
from pytest_ldos.show.report.words import describe_setting, describe_success, summarize, title_of


def render(document: Document) -> Rendered:
    """The page as text."""
    return html.render(compose_page(document))


def compose_page(document: Document) -> Page:
    """Every scenario with its verdict and the way to it, then each by itself."""
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
    return Drawing(lambda: h.a(href=f"#{anchor}")[said(name)])


_MEANINGS: Final = (
    ("●", "a trial of this run"),
    ("◇", "a trial of the base, or baseline"),
    ("✕", "a failed trial; in latencies that a failure cuts short it counts as slower than any"),
    ("interval", "where the true change lies; a change is reported only when this excludes no change"),
    ("floor", "the shaded field: effects within it are too small to be reported on this host"),
    ("MDE", "minimum detectable effect: it would have been reported in four of five such runs"),
    ("stack start", "a field of the trials in order; the stack was started again at its beginning"),
    ("CV", "coefficient of variation between trials"),
)
