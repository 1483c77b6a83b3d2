"""Distributions as bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from htpy import Node

from pytest_ldos.base.units import counted, format_duration, format_quantity
from pytest_ldos.show.report.plots.chart import Axis, Chart, Mark, Series, Shape
from pytest_ldos.show.report.plots.svg import draw

_MOST_BINS: Final = 30
_DECADE: Final = 10.0
_TICKS: Final = 5


def draw_latencies(name: str, latencies_ns: Sequence[int]) -> Node:
    """Number of passages by their latency."""
    return draw(
        _histogram(name, [max(float(each), 1.0) for each in latencies_ns], format_duration, "passage", width=760.0)
    )


def draw_values(name: str, values: Sequence[float], unit: str) -> Node:
    """Number of goals by the value of a metric."""
    return draw(_histogram(name, values, lambda value: format_quantity(value, unit), "goal", width=520.0))


def _histogram(name: str, values: Sequence[float], words: Callable[[float], str], what: str, *, width: float) -> Chart:
    """Bars over an axis that is logarithmic where the values span a decade."""
    is_log = min(values) > 0 and max(values) > _DECADE * min(values)
    scaled = np.log10(values) if is_log else np.asarray(values, dtype=np.float64)
    low, high = float(scaled.min()), float(scaled.max())
    low, high = (low, high) if high > low else (low - 0.05 * abs(low) - 0.5, high + 0.05 * abs(high) + 0.5)
    bins = min(_MOST_BINS, max(6, len(values) // 3))
    counts, edges = np.histogram(scaled, bins=bins, range=(low, high))
    told = [words(10**edge if is_log else edge) for edge in edges.tolist()]
    marks = tuple(
        Mark(left, float(count), f"{begin} to {end}: {counted(int(count), what)}")
        for left, count, begin, end in zip(edges.tolist(), counts.tolist(), told, told[1:], strict=False)
        if count
    )
    size = (high - low) / bins
    places = {words(10**at if is_log else at): at for at in np.linspace(high, low, _TICKS).tolist()}
    most = int(counts.max())
    return Chart(
        title=f"Distribution of {name}: {counted(len(values), what)}",
        x=Axis(low=low - size / 2, high=high + size / 2, ticks=tuple((at, word) for word, at in places.items())),
        y=Axis(
            low=0.0,
            high=most * 1.08,
            ticks=None if most > _TICKS else tuple((float(each), str(each)) for each in range(most + 1)),
            title=f"{what}s",
        ),
        series=(Series(kind="bar", marks=marks, colour="s0", shape=Shape.BAR, size=size),),
        width=width,
        height=180.0,
    )
