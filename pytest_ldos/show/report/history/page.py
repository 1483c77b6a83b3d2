"""Trends as one HTML page that needs nothing else; see `report.html.page`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import Rendered
from pytest_ldos.base.units import format_quantity
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.judge.baseline.history.trend import Trend
from pytest_ldos.show.report.history.data import Shown
from pytest_ldos.show.report.history.figure import chart_of
from pytest_ldos.show.report.history.table import describe, describe_anchors, describe_marks
from pytest_ldos.show.report.html.elements import Column, bullet_list, folded, said, table
from pytest_ldos.show.report.html.page import whole_page
from pytest_ldos.show.report.plots.svg import draw

_TITLE: Final = "History of performance"


def render_page(shown: Shown) -> Rendered:
    """One page with a chart and a table for each trend; loads and runs nothing."""
    sections = [_section(trend, points) for trend, points in shown]
    return whole_page(_TITLE, h.body[h.header[h.h1[_TITLE]], h.main[sections]])


def _section(trend: Trend, points: Sequence[CommitPoint]) -> Node:
    return h.section[
        h.h2[said(describe(trend.series))],
        h.figure(".metric")[draw(chart_of(trend, points)), folded("numbers", _table(trend, points))],
        bullet_list(describe_anchors(trend)),
    ]


def _table(trend: Trend, points: Sequence[CommitPoint]) -> Node:
    numbers = [Column(title, is_number=True) for title in ("trials", "location", "from", "to")]
    columns = [Column("commit"), Column("date"), *numbers, Column("marks")]
    return table(f"Commits of {describe(trend.series)}", columns, [_row(trend, point) for point in points])


def _row(trend: Trend, point: CommitPoint) -> Sequence[Node]:
    numbers = (point.location, point.low, point.high)
    shown = (format_quantity(each, trend.series.unit) if math.isfinite(each) else "–" for each in numbers)
    marks = ", ".join(describe_marks(trend, point))
    return said(point.label), f"{point.runs[0].started_at:%Y-%m-%d}", str(point.count), *shown, said(marks)
