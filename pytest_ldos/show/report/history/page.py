"""Trends as one HTML page that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import format_quantity
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.judge.baseline.history.trend import Trend
from pytest_ldos.show.page import html
from pytest_ldos.show.page.model import ABSENT, Bullets, Column, Drawing, Figure, Kind, Page, Section, Table
from pytest_ldos.show.report.history.data import Shown
from pytest_ldos.show.report.history.figure import chart_of
from pytest_ldos.show.report.history.table import describe, describe_anchors, describe_marks
from pytest_ldos.show.report.plots.svg import draw

_TITLE: Final = "History of performance"
_COLUMNS: Final = (
    Column("commit", Kind.NAME),
    Column("date", Kind.WORD),
    *map(Column, ("trials", "location", "from", "to")),
    Column("marks", Kind.PROSE),
)


def render_page(shown: Shown) -> Rendered:
    """One page with a chart and a table for each trend; loads and runs nothing."""
    return html.render(Page(title=_TITLE, blocks=tuple(_section(trend, points) for trend, points in shown)))


def _section(trend: Trend, points: Sequence[CommitPoint]) -> Section:
    name = describe(trend.series)
    rows = tuple(_row(trend, point) for point in points)
    table = Table(title=f"Commits of {name}", columns=_COLUMNS, rows=rows)
    chart = Drawing(lambda: draw(chart_of(trend, points)))
    figure = Figure(title=trend.series.metric, drawings=(chart,), table=table)
    return Section(name, (figure, Bullets(tuple(describe_anchors(trend)))))


def _row(trend: Trend, point: CommitPoint) -> tuple[str, ...]:
    numbers = (point.location, point.low, point.high)
    shown = (format_quantity(each, trend.series.unit) if math.isfinite(each) else ABSENT for each in numbers)
    marks = ", ".join(describe_marks(trend, point))
    return point.label, f"{point.runs[0].started_at:%Y-%m-%d}", str(point.count), *shown, marks
