"""A document as one HTML page that needs nothing else: no script, no font, no picture from anywhere.

Its colours follow the reader's scheme, its tables hold what its drawings show, and the page says itself
that nothing may be loaded or run.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import htpy as h
from htpy import Node
from markupsafe import Markup

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.show.report.document import Document, Section
from pytest_ldos.show.report.html.elements import Column, badge, bullet_list, said, table
from pytest_ldos.show.report.html.section import render_section
from pytest_ldos.show.report.words import describe_setting, describe_success, summarize, verdict_word

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render(document: Document) -> Rendered:
    """The page as text."""
    anchored = [(f"scenario-{number}", section) for number, section in enumerate(document.sections, 1)]
    title = f"ldos: {verdict_word(document.verdict)}"
    sections = [render_section(section, anchor) for anchor, section in anchored]
    heading = h.h1["ldos ", badge(document.verdict)]
    body = h.body[
        h.a(".skip", href="#results")["Skip to the results"],
        h.header[heading, bullet_list(describe_setting(document)), _navigation(anchored)],
        h.main(id="results", tabindex="-1")[sections, _legend()],
        h.footer[h.p[said(f"{document.made_by} {document.made_at}".strip() or "pytest-ldos")]],
    ]
    return whole_page(title, body)


def whole_page(title: str, body: Node, more_style: str = "") -> Rendered:
    """A page that loads and runs nothing, as text; whatever words are in it can be seen, and end no line.

    Args:
        more_style: a style sheet of a package of ours, beside the one of all pages.
    """
    return Rendered(f"{one_line(str(h.html(lang='en')[_head(title, more_style), body]))}\n")


def _head(title: str, more_style: str) -> Node:
    return h.head[
        h.meta(charset="utf-8"),
        h.meta({"http-equiv": "Content-Security-Policy"}, content=_POLICY),
        h.meta(name="viewport", content="width=device-width, initial-scale=1"),
        h.meta(name="color-scheme", content="light dark"),
        h.link(rel="icon", href="data:,"),
        h.title[one_line(title)],
        h.style[Markup(_style() + more_style)],  # noqa: S704 - files of this package
    ]


def series_style() -> str:
    """The style sheet of drawings with several lines."""
    return _read("series.css")


def _style() -> str:
    return _read("style.css")


def _read(name: str) -> str:
    return files("pytest_ldos.show.report.html").joinpath(name).read_text("utf-8")


def _navigation(anchored: list[tuple[str, Section]]) -> Node:
    """Every scenario with its verdict, and the way to it."""
    columns = [Column(title) for title in ("scenario", "verdict", "trials", "in short")]
    rows = [
        (
            h.a(href=f"#{anchor}")[said(section.scenario)],
            badge(section.verdict),
            describe_success(section),
            said(summarize(section)),
        )
        for anchor, section in anchored
    ]
    return h.nav(aria_label="Scenarios")[table("Scenarios and their verdicts", columns, rows, kind="prose")]


def _legend() -> Node:
    """How to read drawings and numbers."""
    return h.section(aria_labelledby="legend")[
        h.h2(id="legend")["How to read this"],
        h.dl[[(h.dt[word], h.dd[meaning]) for word, meaning in _MEANINGS]],
    ]


_MEANINGS: Final = (
    ("●", "a trial of this run"),
    ("◇", "a trial of the base, or baseline"),
    ("✕", "a failed trial; in latencies that a failure cuts short it counts as slower than any"),
    ("interval", "where the true change lies; a change is reported only when this excludes no change"),
    ("floor", "the shaded field: effects within it are too small to be reported on this host"),
    ("detectable", "the smallest change that would have been reported in four of five such runs"),
    ("stack start", "a field of the trials in order; the stack was started anew at its beginning"),
    ("CV", "coefficient of variation between trials"),
)
