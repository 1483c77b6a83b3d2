"""A chart as a figure of Matplotlib, which is imported when the first one is drawn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pytest_ldos.base.text import one_line
from pytest_ldos.show.report.plots.axes import draw_axes
from pytest_ldos.show.report.plots.chart import Axis, Chart, Field, Mark, Rule, Series, Shape
from pytest_ldos.show.report.plots.palette import light

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI: Final = 72
"""At which a point is a pixel."""

FONT_SIZE: Final = 11
_SETTINGS: Final[dict[Any, Any]] = {
    "font.size": FONT_SIZE,
    "lines.solid_capstyle": "butt",
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "pytest-ldos",
    "text.parse_math": False,
}
_NAN: Final = math.nan


@dataclass
class Tags:
    """The classes and tips of what was drawn, by its identifier in the SVG."""

    found: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def add(self, kind: str, tips: Sequence[str] = ()) -> str:
        """A new identifier."""
        name = f"ldos-{len(self.found)}"
        self.found[name] = kind, tuple(map(one_line, tips))
        return name


@contextmanager
def same_everywhere() -> Iterator[None]:
    """Settings of ours in place of the user's; no warning of letters that only Matplotlib's own font lacks."""
    import matplotlib as mpl  # noqa: PLC0415 - large, and only for plots

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def paint(chart: Chart, tags: Tags, ground: str = "page") -> Figure:
    """The figure, within `same_everywhere`.

    Args:
        ground: colour behind the chart, or ``none``.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - see `same_everywhere`

    figure = Figure(figsize=(chart.width / _DPI, chart.height / _DPI), dpi=_DPI, facecolor=light().get(ground, ground))
    axes = draw_axes(figure, chart)
    for each in chart.fields:
        _draw_field(axes, each, tags)
    for rule in chart.rules:
        _draw_rule(axes, rule, tags)
    for series in chart.series:
        _draw_series(axes, series, chart, tags)
    for label in chart.labels:
        _write(axes, label.text, (label.x, label.y), label.colour)
    if chart.names:
        _draw_legend(figure, axes, chart)
    return figure


def _draw_field(axes: Axes, each: Field, tags: Tags) -> None:
    face = light()[each.colour] if each.colour else "none"
    axes.axvspan(each.low, each.high, facecolor=face, edgecolor="none", zorder=0.1, gid=tags.add(each.kind))
    place, offset = ((each.low + each.high) / 2, 1.0 if each.is_headed else 0.0), 8 if each.is_headed else -16
    _write(axes, each.label, place, each.label_colour, xycoords=axes.get_xaxis_transform(), ha="center", offset=offset)


def _draw_rule(axes: Axes, rule: Rule, tags: Tags) -> None:
    axes.axhline(rule.value, color=light()[rule.colour], linewidth=1.5, linestyle=rule.line, gid=tags.add(rule.kind))


def _write(
    axes: Axes, text: str, place: tuple[float, float], colour: str, *, offset: float = 0.0, **settings: Any
) -> None:
    """A text whose baseline is `offset` pixels above its place."""
    if text:
        axes.annotate(
            one_line(text),
            place,
            (0, offset),
            textcoords="offset points",
            va="baseline",
            color=light()[colour],
            annotation_clip=False,
            **settings,
        )


def _draw_series(axes: Axes, series: Series, chart: Chart, tags: Tags) -> None:
    marks = [mark for mark in series.marks if math.isfinite(mark.x) and math.isfinite(mark.y)]
    if series.shape is Shape.BAR:
        _draw_bars(axes, series, marks, chart.y, tags)
    elif series.line and len(marks) > 1:
        _draw_line(axes, series, [(mark.x, mark.y) for mark in marks], tags.add(f"{series.kind} way"), series.line)
    _draw_intervals(axes, series, marks, chart.y, tags)
    if marks and series.shape not in {Shape.NONE, Shape.BAR}:
        _draw_marks(axes, series, marks, tags)


def _draw_line(axes: Axes, series: Series, points: Sequence[tuple[float, float]], gid: str, line: str) -> None:
    xs, ys = zip(*points, strict=True)
    axes.plot(xs, ys, color=light()[series.colour], linewidth=1.5, linestyle=line, clip_on=False, gid=gid)


def _draw_intervals(axes: Axes, series: Series, marks: Sequence[Mark], up: Axis, tags: Tags) -> None:
    """Lines from bound to bound; to the end of the axis where there is none."""
    for mark in marks:
        if mark.low is not None or mark.high is not None:
            low = up.low if mark.low is None else max(up.low, mark.low)
            high = up.high if mark.high is None else min(up.high, mark.high)
            x = mark.x + (series.size / 2 if series.shape is Shape.BAR else 0.0)
            _draw_line(axes, series, [(x, low), (x, high)], tags.add("whisker"), "-")


def _draw_bars(axes: Axes, series: Series, marks: Sequence[Mark], up: Axis, tags: Tags) -> None:
    """Bars to the right of their marks."""
    ground = max(0.0, up.low)
    for mark in marks:
        (bar,) = axes.bar(mark.x, mark.y - ground, series.size, ground, align="edge", color=light()[series.colour])
        bar.set(gid=tags.add(series.kind, [mark.tip]), edgecolor=light()["panel"], clip_on=False)


def _draw_marks(axes: Axes, series: Series, marks: Sequence[Mark], tags: Tags) -> None:
    colour, ground = light()[series.colour], light()["panel"]
    is_open = series.is_hollow or series.shape is Shape.CROSS
    axes.plot(
        [mark.x for mark in marks],
        [mark.y for mark in marks],
        linestyle="none",
        marker=series.shape.value,
        markersize=series.size,
        markerfacecolor=ground if series.is_hollow else colour,
        markeredgecolor=colour if is_open else ground,
        markeredgewidth=2 if series.shape is Shape.CROSS else 1.5 if series.is_hollow else 1,
        clip_on=False,
        gid=tags.add(series.kind, [mark.tip for mark in marks]),
    )


def _draw_legend(figure: Figure, axes: Axes, chart: Chart) -> None:
    handles = [
        axes.plot(
            [_NAN],
            [_NAN],
            color=light()[series.colour],
            marker=series.shape.value or None,
            markerfacecolor="none" if series.is_hollow else light()[series.colour],
            linestyle=series.line or "none",
        )[0]
        for _, series in chart.names
    ]
    figure.legend(
        handles,
        [name for name, _ in chart.names],
        loc="upper right",
        ncols=len(handles),
        frameon=False,
        labelcolor=light()["muted"],
        borderaxespad=0.2,
    )
