"""Charts as values: marks, rules and fields over two axes, in colours named as in the pages' style sheets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from pytest_ldos.base.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_ROOM: Final = 0.06  # margin at either end, as a share of the span
_DECADE: Final = 10.0

Ticks = tuple[tuple[float, str], ...]  # values of an axis, with their labels


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A linear or logarithmic axis; labelled at round values if no ticks are given."""

    low: float
    high: float
    title: str = ""
    is_log: bool = False
    ticks: Ticks | None = None

    @classmethod
    def around(
        cls, values: Iterable[float], *, title: str = "", is_log: bool = False, ticks: Ticks | None = None
    ) -> Self:
        """An axis that holds all values, with a margin; of at least some span for equal values."""
        found = [value for value in values if math.isfinite(value)] or [1.0 if is_log else 0.0]
        low, high = min(found), max(found)
        if is_log:
            ratio = (high / low) ** _ROOM if high > low else math.exp(0.5)
            return cls(low=low / ratio, high=high * ratio, title=title, is_log=True, ticks=ticks)
        room = _ROOM * (high - low) or 0.05 * abs(low) or 1.0
        return cls(low=low - room, high=high + room, title=title, ticks=ticks)

    def share(self, value: float) -> float:
        """The position of a value: 0 at the low end, 1 at the high end; clamped to these."""
        if value <= self.low or value >= self.high:
            return 0.0 if value <= self.low else 1.0
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        """The value at a position; positions below 0 and above 1 are outside the axis."""
        if self.is_log:
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)


def spans_decades(values: Iterable[float]) -> bool:
    """True if a logarithmic axis is suitable: all values are positive and span a decade or more."""
    found = list(values)
    return bool(found) and min(found) > 0 and max(found) / min(found) >= _DECADE


class Shape(StrEnum):
    NONE = ""
    CIRCLE = "o"
    SQUARE = "s"
    DIAMOND = "D"
    TRIANGLE = "^"
    CROSS = "x"
    BAR = "bar"


SHAPES: Final = (Shape.CIRCLE, Shape.SQUARE, Shape.DIAMOND, Shape.TRIANGLE)
"""Marks of lines, used cyclically, so that lines differ not only in colour."""

COLOURS: Final = 6  # number of colours of lines in series.css: `s0` to `s5`


@dataclass(frozen=True)
class Mark:
    x: float
    y: float
    tip: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    """Marks of the same style, in the order in which a line joins them."""

    kind: str  # class in the page
    marks: tuple[Mark, ...]
    colour: str
    shape: Shape = Shape.NONE
    is_hollow: bool = False
    line: str = ""  # dashes of the line that joins the marks (`-`, `--`, `:`); empty for none
    size: float = 7.2  # width of a mark [px]; of a bar, in units of the axis


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A horizontal line across the chart."""

    kind: str
    value: float
    colour: str = "muted"
    line: str = "-"


@dataclass(frozen=True, kw_only=True)
class Field:
    """A span of the horizontal axis, filled if it has a colour; its label is below it, or above if `is_headed`."""

    kind: str
    low: float
    high: float
    colour: str = ""
    label: str = ""
    label_colour: str = "muted"
    is_headed: bool = False


@dataclass(frozen=True, kw_only=True)
class Label:
    """Text that begins at a position of the chart."""

    x: float
    y: float
    text: str
    colour: str = "muted"


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart, in pixels."""

    title: str  # one sentence of alternative text
    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    rules: tuple[Rule, ...] = ()
    fields: tuple[Field, ...] = ()
    labels: tuple[Label, ...] = ()
    detail: str = ""  # all of its values in words; empty if a table has them
    note: str = ""  # text in the upper right corner
    names: tuple[tuple[str, Series], ...] = ()  # labels of series, for a legend inside the chart; pages have their own
    width: float = 520.0
    height: float = 250.0
    left: float = 64.0
    right: float = 16.0
    top: float = 26.0
    bottom: float = 44.0
    below: float = 15.0  # distance from the horizontal axis to the baseline of its labels

    @property
    def inner_width(self) -> float:
        return self.width - self.left - self.right

    @property
    def inner_height(self) -> float:
        return self.height - self.top - self.bottom


_VARIABLE: Final = re.compile(r"--([a-z]\w*): (#[0-9a-f]{6});")


@cache
def light() -> Mapping[str, str]:
    return colours(dark=False)


def colours(*, dark: bool) -> Mapping[str, str]:
    """``#rrggbb`` by name of the variable, on a light or dark background."""
    folder = files("pytest_ldos.show.page")
    texts = (folder.joinpath(name).read_text("utf-8") for name in ("style.css", "series.css"))
    sheets = (text.partition("@media (prefers-color-scheme: dark)") for text in texts)
    return MappingProxyType(dict(pair for sheet in sheets for pair in _VARIABLE.findall(sheet[2 if dark else 0])))


@cache
def variables() -> Mapping[str, str]:
    """``var(--name)`` by ``#rrggbb`` of the light scheme; for equal colours, the name common to all pages."""
    return MappingProxyType({colour: f"var(--{name})" for name, colour in reversed(list(light().items()))})


_LETTER: Final = 7.0  # approximate width of a letter in a label [px]
_LEAST: Final = 44.0  # gap between labels of the horizontal axis [px]
_LINE: Final = 14.0
_STEPS: Final = (1, 2, 5, 10)
_FEW_DECADES: Final = 3


def draw_axes(figure: Figure, chart: Chart) -> Axes:
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
    up = _round_ticks(chart.y, 4) if chart.y.ticks is None else chart.y.ticks
    labels = [one_line(label) for _, label in up]
    axes.set_yticks([value for value, _ in up], labels, va="center_baseline", color=light()["muted"])
    axes.tick_params(axis="y", length=0, pad=6)
    axes.grid(visible=True, axis="y", color=light()["edge"], linewidth=1)
    for x, y, text, side in (
        (4, height - 13, chart.y.title, "left"),
        (width - chart.right, 6, chart.x.title, "right"),
        (width - chart.right, height - 13, chart.note, "right"),
    ):
        figure.text(x / width, y / height, one_line(text), ha=side, va="baseline", color=light()["muted"])
    return axes


def _label_across(axes: Axes, chart: Chart) -> None:
    """Labels in one line, or alternating between two lines if there is no room; some are left out, long ones cut."""
    ticks = list(_round_ticks(chart.x, 5)) if chart.x.ticks is None else []
    for value, text in sorted(chart.x.ticks or ()):
        if not ticks or chart.inner_width * (chart.x.share(value) - chart.x.share(ticks[-1][0])) >= _LEAST:
            ticks.append((value, one_line(text)))
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


def _round_ticks(axis: Axis, wanted: int) -> Ticks:
    from matplotlib.ticker import LogLocator, MaxNLocator  # noqa: PLC0415 - see `paint.same_everywhere`

    locator: Any = MaxNLocator(wanted, steps=_STEPS)
    if axis.is_log:
        decades = math.log10(axis.high / axis.low)
        locator = LogLocator(subs=(1.0,) if decades > _FEW_DECADES else (1.0, 2.0, 5.0), numticks=wanted + 2)
    values = [float(value) for value in locator.tick_values(axis.low, axis.high)]
    return tuple((value, f"{value + 0.0:.6g}") for value in values if axis.low <= value <= axis.high)


def cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: max(0, letters - 1)]}…"
