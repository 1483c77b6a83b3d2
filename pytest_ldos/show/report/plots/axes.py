"""The axes of a chart: their ends, grid, and labels that do not hide each other."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from pytest_ldos.base.text import one_line
from pytest_ldos.show.report.plots.chart import Axis, Chart, Ticks
from pytest_ldos.show.report.plots.palette import light

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTER: Final = 7.0
"""Pixels that a letter of a label takes, about."""

_LEAST: Final = 44.0
"""Pixels between two labels of the horizontal axis."""

_LINE: Final = 14.0
_STEPS: Final = (1, 2, 5, 10)
_FEW_DECADES: Final = 3


def draw_axes(figure: Figure, chart: Chart) -> Axes:
    """Empty axes with their titles."""
    width, height = chart.width, chart.height
    axes = figure.add_axes(
        (chart.left / width, chart.bottom / height, chart.inner_width / width, chart.inner_height / height),
        facecolor="none",
        axisbelow=True,
        xscale="log" if chart.x.is_log else "linear",
        yscale="log" if chart.y.is_log else "linear",
        xlim=(chart.x.low, chart.x.high),
        ylim=(chart.y.low, chart.y.high),
    )
    axes.minorticks_off()
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.spines["bottom"].set_color(light()["muted"])
    _label_across(axes, chart)
    _label_up(axes, chart.y)
    for x, y, text, side in (
        (4, height - 13, chart.y.title, "left"),
        (width - chart.right, 6, chart.x.title, "right"),
        (width - chart.right, height - 13, chart.note, "right"),
    ):
        figure.text(x / width, y / height, one_line(text), ha=side, va="baseline", color=light()["muted"])
    return axes


def _label_across(axes: Axes, chart: Chart) -> None:
    """Labels in one line; where there is no room, in two lines in turn, long ones cut."""
    ticks = _round_ticks(chart.x, 5) if chart.x.ticks is None else _thinned(chart.x, chart.inner_width)
    places = [chart.inner_width * chart.x.share(value) for value, _ in ticks]
    room = int(min((after - before for before, after in pairwise(places)), default=chart.inner_width) / _LETTER)
    is_crowded = any(len(label) > room for _, label in ticks)
    labels = [cut(label, 2 * room) for _, label in ticks]
    axes.set_xticks([value for value, _ in ticks], labels, va="baseline", color=light()["muted"])
    axes.tick_params(axis="x", length=4, pad=chart.below - 4, color=light()["muted"])
    for label in axes.get_xticklabels()[1::2] if is_crowded else ():
        label.set_y(-_LINE / chart.inner_height)
    if chart.x.ticks is None:
        axes.grid(visible=True, axis="x", color=light()["edge"], linewidth=1)


def _label_up(axes: Axes, up: Axis) -> None:
    ticks = _round_ticks(up, 4) if up.ticks is None else up.ticks
    labels = [one_line(label) for _, label in ticks]
    axes.set_yticks([value for value, _ in ticks], labels, va="center_baseline", color=light()["muted"])
    axes.tick_params(axis="y", length=0, pad=6)
    axes.grid(visible=True, axis="y", color=light()["edge"], linewidth=1)


def _thinned(axis: Axis, width: float) -> Ticks:
    kept: list[tuple[float, str]] = []
    for value, label in sorted(axis.ticks or ()):
        if not kept or width * (axis.share(value) - axis.share(kept[-1][0])) >= _LEAST:
            kept.append((value, one_line(label)))
    return tuple(kept)


def _round_ticks(axis: Axis, wanted: int) -> Ticks:
    from matplotlib.ticker import LogLocator, MaxNLocator  # noqa: PLC0415 - see `paint.same_everywhere`

    locator: Any = MaxNLocator(wanted, steps=_STEPS)
    if axis.is_log:
        decades = math.log10(axis.high / axis.low)
        subs = (1.0,) if decades > _FEW_DECADES else (1.0, 2.0, 5.0)
        locator = LogLocator(subs=subs, numticks=wanted + 2)
    values = [float(value) for value in locator.tick_values(axis.low, axis.high)]
    return tuple((value, f"{value + 0.0:.6g}") for value in values if axis.low <= value <= axis.high)


def cut(text: str, letters: int) -> str:
    """As much of a text as there is room for."""
    return text if len(text) <= letters else f"{text[: max(0, letters - 1)]}…"
