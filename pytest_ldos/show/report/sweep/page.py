"""A sweep as one HTML page that needs nothing else; see `report.html.page`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import Rendered
from pytest_ldos.show.report.html.elements import Column, bullet_list, folded, said, table
from pytest_ldos.show.report.html.page import series_style, whole_page
from pytest_ldos.show.report.sweep.document import (
    LOAD_NUMBERS,
    NOT_MEASURED,
    CellReport,
    LoadNumber,
    MetricTitle,
    SweepReport,
)
from pytest_ldos.show.report.sweep.figure import Point, Quantity, draw, legend
from pytest_ldos.show.report.sweep.tables import (
    PlainTable,
    interval_of,
    load_table,
    median_of,
    metric_tables,
    overview,
    shown_metrics,
    succeeded,
)

_SIGNS: Final = {"valid": "✓", "broken": "✕", "invalid": "✕", "infra": "✕"}
_CLASSES: Final = {NOT_MEASURED: "unmeasured"}
_STATE: Final = "state"


def render(report: SweepReport) -> Rendered:
    """The page as text."""
    title = f"ldos sweep {report.name}"
    setting = [each for each in (f"commit {report.commit}" if report.commit else "", report.stack) if each]
    body = h.body[
        h.a(".skip", href="#results")["Skip to the results"],
        h.header[h.h1[said(title)], bullet_list([*setting, *report.notes])],
        h.main(id="results", tabindex="-1")[_cells(report), _metrics(report), _legend()],
        h.footer[h.p[said(f"{report.made_by} {report.made_at}")]],
    ]
    return whole_page(title, body, _style())


def _style() -> str:
    return series_style() + files("pytest_ldos.show.report.sweep").joinpath("style.css").read_text("utf-8")


def _cells(report: SweepReport) -> Node:
    loads = load_table(report)
    reasons = [f"{cell.label}: {cell.state}: {each}" for cell in report.cells for each in cell.reasons]
    return h.section(aria_labelledby="cells")[
        h.h2(id="cells")["Cells"],
        _table(overview(report)),
        None if loads is None else _table(loads),
        [h.h3["Reasons"], bullet_list(reasons)] if reasons else None,
    ]


def _metrics(report: SweepReport) -> Node:
    return h.section(aria_labelledby="metrics")[
        h.h2(id="metrics")["Metrics over the axes"],
        legend(report),
        h.div(".charts")[
            _figure("success rate", list(draw(report, _success())), None),
            list(_load_figures(report)),
            list(_figures(report)),
        ],
    ]


def _load_figures(report: SweepReport) -> Iterator[Node]:
    """What loads did, where there is more than one number of it."""
    for number in LOAD_NUMBERS:
        if sum(number.key in cell.load_numbers for cell in report.cells) > 1:
            yield _figure(number.title, list(draw(report, _of_load(number))), None)


def _of_load(number: LoadNumber) -> Quantity:
    def point(cell: CellReport) -> Point:
        value = cell.load_numbers.get(number.key)
        told = "no value" if value is None else f"{value:.4g} {number.unit}"
        return Point(cell, value, value, value, f"{cell.label}: {told}{_state(cell)}")

    return Quantity(number.title, number.unit, point, limits=(-4, 104) if number.unit == "%" else None)


def _figures(report: SweepReport) -> Iterator[Node]:
    for metric, numbers in zip(shown_metrics(report), metric_tables(report), strict=True):
        title = f"{metric.name} {metric.title}"
        yield _figure(title, list(draw(report, _quantity(metric))), folded("numbers", _table(numbers)))


def _figure(title: str, drawings: list[Node], numbers: Node) -> Node:
    return h.figure(".metric", aria_label=title)[h.h3[said(title)], h.div(".drawings")[drawings], numbers]


def _success() -> Quantity:
    def point(cell: CellReport) -> Point:
        share = 100 * cell.successes / cell.trials if cell.trials else None
        low, high = (100 * cell.success_low, 100 * cell.success_high) if cell.trials else (None, None)
        return Point(cell, share, low, high, f"{cell.label}: {succeeded(cell)} succeeded{_state(cell)}")

    return Quantity("success rate", "%", point, limits=(-4, 104))


def _quantity(metric: MetricTitle) -> Quantity:
    def point(cell: CellReport) -> Point:
        found = cell.metrics.get(metric.name)
        if found is None or found.median is None:
            told = "failed" if found is not None and found.values else "no value"
            return Point(cell, None, None, None, f"{cell.label}: {told}{_state(cell)}")
        interval = f" ({interval_of(found)})" if interval_of(found) else ""
        tip = f"{cell.label}: {median_of(found, metric)}{interval}{_state(cell)}"
        return Point(cell, found.median, found.low, found.high, tip)

    return Quantity(metric.name, metric.unit, point)


def _state(cell: CellReport) -> str:
    return "" if cell.is_valid else f", {cell.state}"


def _table(plain: PlainTable) -> Node:
    is_number = [number > 0 and name not in plain.left for number, name in enumerate(plain.columns)]
    columns = [Column(name, is_number=each) for name, each in zip(plain.columns, is_number, strict=True)]
    rows = [[_cell(name, cell) for name, cell in zip(plain.columns, row, strict=True)] for row in plain.rows]
    return table(plain.title, columns, rows)


def _cell(column: str, text: str) -> Node:
    if column != _STATE:
        return said(text)
    sign = h.span(aria_hidden="true")[_SIGNS.get(text, "?")]
    return h.span(class_=f"badge {_CLASSES.get(text, text)}")[sign, " ", text]


def _legend() -> Node:
    return h.section(aria_labelledby="legend")[
        h.h2(id="legend")["How to read this"], h.dl[[(h.dt[word], h.dd[meaning]) for word, meaning in _MEANINGS]]
    ]


_MEANINGS: Final = (
    ("●", "the median of a cell's trials, with its interval; an interval that ends at the edge has no such end"),
    (
        "✕",
        "a cell that is not valid: its load or all its trials were not reached; below the axis: no number",
    ),
    ("broken", "the arm could not go on beside the load; its last trial, whose way home failed, counts as failed"),
    ("failed", "more than half of the trials failed, and a failed one counts as slower than any"),
    ("ratio", "to the first valid cell, as measured; its interval knows how starts differ where there were several"),
    ("log", "values that span a decade or more are drawn to a logarithmic scale"),
)
