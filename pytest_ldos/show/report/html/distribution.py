"""How the values of a metric lie, of both versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.units import format_quantity
from pytest_ldos.show.report.document import MetricReport, Point, Sample
from pytest_ldos.show.report.html.drawing import cross, frame, horizontal_axis, line, mark, words
from pytest_ldos.show.report.html.scale import Scale
from pytest_ldos.show.report.words import median_of

_WIDTH: Final = 520
_LEFT: Final = 92
_RIGHT: Final = 22
_ROW: Final = 84
_PITCH: Final = 8.0
_MOST_IN_COLUMN: Final = 8


def draw_distribution(metric: MetricReport, samples: Sequence[tuple[str, str, Sample]]) -> Node:
    """Every trial as a mark above its value, a row a version, medians as lines.

    Args:
        samples: version (``base``, ``head``), its label, its values.
    """
    found = [point.value for *_, sample in samples for point in sample.points if point.value is not None]
    scale = Scale.around(found, start=_LEFT, end=_WIDTH - _RIGHT)
    height = _ROW * len(samples)
    rows = [
        _row(metric, version, label, sample, scale, _ROW * (number + 1) - 12)
        for number, (version, label, sample) in enumerate(samples)
    ]
    medians = ", ".join(f"{label} {median_of(metric, sample)}" for _, label, sample in samples)
    label = f"Distribution of {metric.name} {metric.title}; medians: {medians}"
    axis = list(horizontal_axis(scale, height, top=6, unit=metric.unit))
    return frame(_WIDTH, height + 34, label=label, content=[axis, rows])


def _row(metric: MetricReport, version: str, label: str, sample: Sample, scale: Scale, y: float) -> Node:
    return h.g[
        words(4, y - 20, label, version),
        None if sample.median is None else line(scale(sample.median), y - 62, scale(sample.median), y + 8, version),
        list(_stack(metric, version, sample.points, scale, y)),
        list(_failed(sample.points, scale, y)),
    ]


def _stack(metric: MetricReport, version: str, points: Sequence[Point], scale: Scale, y: float) -> Iterator[Node]:
    """Marks that would hide each other stand above each other."""
    columns: dict[int, int] = {}
    for point in sorted(points, key=lambda point: point.value or 0.0):
        if point.value is not None:
            x = scale(point.value)
            column = round(x / _PITCH)
            level = columns.get(column, 0)
            columns[column] = level + 1
            tip = f"trial {point.trial}: {format_quantity(point.value, metric.unit)}"
            yield mark(x, y - _PITCH * (level % _MOST_IN_COLUMN), version, tip)


def _failed(points: Sequence[Point], scale: Scale, y: float) -> Iterator[Node]:
    """Trials that count as slower than any, at the right edge."""
    failed = [point for point in points if point.value is None]
    for level, point in enumerate(failed[:_MOST_IN_COLUMN]):
        yield cross(scale.end + 12, y - _PITCH * level, f"trial {point.trial} failed: slower than any")
