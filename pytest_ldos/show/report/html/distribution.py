"""Distribution of the values of a metric, in both versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from htpy import Node

from pytest_ldos.base.text import one_line
from pytest_ldos.base.units import format_quantity
from pytest_ldos.show.report.document import MetricReport, Sample
from pytest_ldos.show.report.html.marks import failed, trials
from pytest_ldos.show.report.plots.axes import cut
from pytest_ldos.show.report.plots.chart import Axis, Chart, Label, Mark, Series
from pytest_ldos.show.report.plots.svg import draw
from pytest_ldos.show.report.words import median_of

_ROW: Final = 84
_PITCH: Final = 8.0
_MOST_IN_COLUMN: Final = 8
_LETTERS: Final = 14
_BESIDE: Final = 12.0
"""Pixels from the axis to failed trials."""


def draw_distribution(metric: MetricReport, samples: Sequence[tuple[str, str, Sample]]) -> Node:
    """Every trial as a mark above its value, a row for each version, medians as lines.

    Args:
        samples: version (``base``, ``head``), its label, its values.
    """
    values = [point.value for *_, sample in samples for point in sample.points if point.value is not None]
    medians = ", ".join(f"{label} {median_of(metric, sample)}" for _, label, sample in samples)
    rows = [_ROW * (len(samples) - number) - 72.0 for number in range(len(samples))]
    chart = Chart(
        title=f"Distribution of {metric.name} {metric.title}; medians: {medians}",
        x=Axis.around(values, title=metric.unit),
        y=Axis(low=0.0, high=_ROW * len(samples), ticks=()),
        height=_ROW * len(samples) + 42,
        left=92,
        right=22,
        top=6,
        bottom=36,
    )
    named = [
        Label(x=chart.x.at(-88 / chart.inner_width), y=row + 20, text=cut(one_line(label), _LETTERS), colour=version)
        for row, (version, label, _) in zip(rows, samples, strict=True)
    ]
    series = [
        each
        for row, (version, _, sample) in zip(rows, samples, strict=True)
        for each in _row(chart, metric, version, sample, row)
    ]
    return draw(replace(chart, labels=tuple(named), series=tuple(series)))


def _row(chart: Chart, metric: MetricReport, version: str, sample: Sample, row: float) -> Iterator[Series]:
    if sample.median is not None:
        ends = Mark(sample.median, row - 8), Mark(sample.median, row + 62)
        yield Series(kind=version, marks=ends, colour=version, line="-")
    yield trials(version, _stack(chart, metric, sample, row))
    missing = [point for point in sample.points if point.value is None][:_MOST_IN_COLUMN]
    x = chart.x.at(1 + _BESIDE / chart.inner_width)
    yield failed(Mark(x, row + _PITCH * level, f"trial {each.trial}") for level, each in enumerate(missing))


def _stack(chart: Chart, metric: MetricReport, sample: Sample, row: float) -> Iterator[Mark]:
    """Marks that would hide each other stand above each other."""
    columns: dict[int, int] = {}
    for point in sorted(sample.points, key=lambda point: point.value or 0.0):
        if point.value is not None:
            column = round(chart.x.share(point.value) * chart.inner_width / _PITCH)
            level = columns.get(column, 0)
            columns[column] = level + 1
            tip = f"trial {point.trial}: {format_quantity(point.value, metric.unit)}"
            yield Mark(point.value, row + _PITCH * (level % _MOST_IN_COLUMN), tip)
