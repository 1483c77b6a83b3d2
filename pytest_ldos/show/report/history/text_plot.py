"""A plot of a trend in plain characters: commits from left to right, intervals as bars, the anchor dashed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pytest_ldos.base.units import format_quantity
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.judge.baseline.history.trend import Trend

_ROWS: Final = 11
_MARGIN: Final = 12
_GAP: Final = 2


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float

    def row(self, value: float) -> int:
        """From 0 at the top."""
        return round((self.high - value) / (self.high - self.low) * (_ROWS - 1))


def plot_as_text(trend: Trend, shown: Sequence[CommitPoint], *, width: int) -> list[str]:
    """Lines of at most `width` columns; none where fewer than two commits have a number.

    ``o`` a commit, ``C`` one where the level changes, ``!`` one by which it has crept away.
    """
    room = width - _MARGIN - _GAP
    points = [point for point in shown if math.isfinite(point.location)][-room:]
    scale = _scale(trend, points)
    if len(points) < 2 or scale is None:
        return []
    pitch = min(4, room // len(points))
    grid = [[" "] * (len(points) * pitch) for _ in range(_ROWS)]
    if trend.anchor is not None:
        grid[scale.row(trend.anchor)] = list(("-" + " " * (pitch - 1)) * len(points))
    for number, point in enumerate(points):
        _draw(grid, scale, point, number * pitch)
    labels = {0: scale.high, _ROWS // 2: (scale.high + scale.low) / 2, _ROWS - 1: scale.low}
    lines = [
        f"{format_quantity(labels[row], trend.series.unit) if row in labels else '':>{_MARGIN}} |{''.join(cells)}"
        for row, cells in enumerate(grid)
    ]
    legend = "o commit  | interval  - anchor  C level changes  ! creep"
    return [*(line.rstrip() for line in lines), f"{'':>{_MARGIN + _GAP}}{legend}"]


def _draw(grid: list[list[str]], scale: _Scale, point: CommitPoint, column: int) -> None:
    if math.isfinite(point.low) and math.isfinite(point.high):
        for row in range(max(0, scale.row(point.high)), min(_ROWS - 1, scale.row(point.low)) + 1):
            grid[row][column] = "|"
    grid[scale.row(point.location)][column] = "C" if point.change_point else "!" if point.creeps else "o"


def _scale(trend: Trend, points: Sequence[CommitPoint]) -> _Scale | None:
    """All locations and the anchor; intervals may be cut, so that a wide one does not flatten the rest."""
    values = [point.location for point in points]
    values += [] if trend.anchor is None else [trend.anchor]
    if not values:
        return None
    low, high = min(values), max(values)
    edge = 0.15 * (high - low) or 0.01 * abs(high) or 1.0
    return _Scale(low - edge, high + edge)
