"""Trends as one HTML page that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import htpy as h

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import format_quantity
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.judge.baseline.history.trend import Trend
from pytest_ldos.show.page import html
from pytest_ldos.show.page.html_parts import said
from pytest_ldos.show.page.model import ABSENT, Bullets, Cell, Column, Drawing, Figure, Kind, Page, Section, Table
from pytest_ldos.show.report.history.data import Shown
from pytest_ldos.show.report.history.figure import chart_of
from pytest_ldos.show.report.history.origins import Origins
from pytest_ldos.show.report.history.table import (
    describe,
    describe_anchors,
    describe_interval,
    describe_marks,
    show_change,
)
from pytest_ldos.show.report.plots.svg import draw

TITLE: Final = "History of performance"
_COLUMNS: Final = (
    Column("commit", Kind.NAME),
    Column("date", Kind.WORD),
    *map(Column, ("trials", "location", "from", "to", "step", "interval")),
    Column("marks", Kind.PROSE),
    Column("change", Kind.PROSE),
)


def render_page(shown: Shown) -> Rendered:
    """One page with a chart and a table for each trend; loads and runs nothing."""
    return html.render(Page(title=TITLE, blocks=tuple(show_trend(trend, points, Origins()) for trend, points in shown)))


def show_trend(trend: Trend, points: Sequence[CommitPoint], origins: Origins, *, anchor: str = "") -> Section:
    """The chart of a trend, its commits with their origins, and its anchors.

    Args:
        anchor: of the section.
    """
    name = describe(trend.series)
    chart = Drawing(lambda: draw(chart_of(trend, points)))
    figure = Figure(title=trend.series.metric, drawings=(chart,), table=_commits(trend, points, origins))
    return Section(name, (figure, Bullets(tuple(describe_anchors(trend)))), anchor=anchor)


def _commits(trend: Trend, points: Sequence[CommitPoint], origins: Origins) -> Table:
    rows = tuple(_row(trend, point, origins) for point in points)
    return Table(title=f"Commits of {describe(trend.series)}", columns=_COLUMNS, rows=rows).without_empty()


def _row(trend: Trend, point: CommitPoint, origins: Origins) -> tuple[Cell, ...]:
    numbers = (point.location, point.low, point.high)
    shown = (format_quantity(each, trend.series.unit) if math.isfinite(each) else ABSENT for each in numbers)
    return (
        link_commit(point.commit, point.label, origins),
        f"{point.runs[0].started_at:%Y-%m-%d}",
        str(point.count),
        *shown,
        show_change(trend, point.step),
        describe_interval(point.step),
        ", ".join(describe_marks(trend, point)),
        _change(point, origins),
    )


def link_commit(commit: str, label: str, origins: Origins) -> Cell:
    """A commit's name, which leads to it where it has an address."""
    url = origins.commit_url(commit)
    return Drawing(lambda: h.a(href=url)[said(label)]) if url else label


def _change(point: CommitPoint, origins: Origins) -> Cell:
    """The pull request of a commit, and its subject; empty where neither is known."""
    subject, found = origins.subject(point.commit), origins.pull_request(point)
    return Drawing(lambda: [h.a(href=found.url)[found.title], " ", said(subject)]) if found else subject
