"""Plots of a sweep's quantities over its axes."""

from __future__ import annotations

from htpy import Node

from pytest_ldos.campaign.cells import show_value
from pytest_ldos.show.report.plots.legend import draw_legend
from pytest_ldos.show.report.sweep.document import CellReport, LoadNumber, MetricTitle, SweepReport
from pytest_ldos.show.report.sweep.figure import Point, Quantity, draw, series_of
from pytest_ldos.show.report.sweep.tables import interval_of, median_of, succeeded


def draw_lines(report: SweepReport) -> Node:
    """The value of the second axis of each line; nothing for a single line."""
    if len(report.axes) < 2:
        return None
    return draw_legend("Lines", [f"{report.axes[1].name}={show_value(value)}" for (value,) in series_of(report)])


def draw_success(report: SweepReport) -> Node:
    """Success rates."""

    def point(cell: CellReport) -> Point:
        share = 100 * cell.successes / cell.trials if cell.trials else None
        low, high = (100 * cell.success_low, 100 * cell.success_high) if cell.trials else (None, None)
        return Point(cell, share, low, high, f"{cell.label}: {succeeded(cell)} succeeded{_state(cell)}")

    return list(draw(report, Quantity("success rate", "%", point, limits=(-4, 104))))


def draw_load(report: SweepReport, number: LoadNumber) -> Node:
    """A number of what loads did."""

    def point(cell: CellReport) -> Point:
        value = cell.load_numbers.get(number.key)
        told = "no value" if value is None else f"{value:.4g} {number.unit}"
        return Point(cell, value, value, value, f"{cell.label}: {told}{_state(cell)}")

    limits = (-4, 104) if number.unit == "%" else None
    return list(draw(report, Quantity(number.title, number.unit, point, limits=limits)))


def draw_metric(report: SweepReport, metric: MetricTitle) -> Node:
    """Medians of a metric with their intervals."""

    def point(cell: CellReport) -> Point:
        found = cell.metrics.get(metric.name)
        if found is None or found.median is None:
            told = "failed" if found is not None and found.values else "no value"
            return Point(cell, None, None, None, f"{cell.label}: {told}{_state(cell)}")
        interval = f" ({interval_of(found)})" if interval_of(found) else ""
        tip = f"{cell.label}: {median_of(found, metric)}{interval}{_state(cell)}"
        return Point(cell, found.median, found.low, found.high, tip)

    return list(draw(report, Quantity(metric.name, metric.unit, point)))


def _state(cell: CellReport) -> str:
    return "" if cell.is_valid else f", {cell.state}"
