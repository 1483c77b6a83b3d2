"""Charts as values: marks, rules and fields over two axes.

Colours are names of variables in the pages' style sheets; see `palette`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

_ROOM: Final = 0.06
"""Share of the span that stays free at either end."""

_DECADE: Final = 10.0

Ticks = tuple[tuple[float, str], ...]
"""Values of an axis, with their labels."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A linear or logarithmic axis.

    Attributes:
        ticks: labelled values; round values if not given.
    """

    low: float
    high: float
    title: str = ""
    is_log: bool = False
    ticks: Ticks | None = None

    @classmethod
    def around(
        cls, values: Iterable[float], *, title: str = "", is_log: bool = False, ticks: Ticks | None = None
    ) -> Self:
        """An axis that holds all values, with some room; around equal values, a span of its own."""
        found = [value for value in values if math.isfinite(value)] or [1.0 if is_log else 0.0]
        low, high = min(found), max(found)
        if is_log:
            ratio = (high / low) ** _ROOM if high > low else math.exp(0.5)
            return cls(low=low / ratio, high=high * ratio, title=title, is_log=True, ticks=ticks)
        room = _ROOM * (high - low) or 0.05 * abs(low) or 1.0
        return cls(low=low - room, high=high + room, title=title, ticks=ticks)

    def share(self, value: float) -> float:
        """The place of a value: 0 at the low end, 1 at the high end; the nearer end for a value beyond."""
        if value <= self.low or value >= self.high:
            return 0.0 if value <= self.low else 1.0
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        """The value at a place; places below 0 and above 1 lie outside the axis."""
        if self.is_log:
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)


def spans_decades(values: Iterable[float]) -> bool:
    """True if a logarithmic axis serves: all values are above 0 and span a decade or more."""
    found = list(values)
    return bool(found) and min(found) > 0 and max(found) / min(found) >= _DECADE


class Shape(StrEnum):
    """The form of a mark."""

    NONE = ""
    CIRCLE = "o"
    SQUARE = "s"
    DIAMOND = "D"
    TRIANGLE = "^"
    CROSS = "x"
    BAR = "bar"


SHAPES: Final = (Shape.CIRCLE, Shape.SQUARE, Shape.DIAMOND, Shape.TRIANGLE)
"""Marks of lines, in turn, so that colour is not all that tells them apart."""

COLOURS: Final = 6
"""Number of colours of lines in series.css: ``s0`` to ``s5``."""


@dataclass(frozen=True)
class Mark:
    """A point, with its interval if it has one.

    Attributes:
        tip: text that is displayed when it is pointed at.
    """

    x: float
    y: float
    tip: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Series:
    """Marks of one look, in the order in which a line joins them.

    Attributes:
        kind: class in the page.
        line: dashes of the line that joins the marks (``-``, ``--``, ``:``); empty for none.
        size: width of a mark [px]; of a bar, in units of the axis.
    """

    kind: str
    marks: tuple[Mark, ...]
    colour: str
    shape: Shape = Shape.NONE
    is_hollow: bool = False
    line: str = ""
    size: float = 7.2


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A horizontal line across the chart."""

    kind: str
    value: float
    colour: str = "muted"
    line: str = "-"


@dataclass(frozen=True, kw_only=True)
class Field:
    """A span of the horizontal axis.

    Attributes:
        colour: no fill if empty.
        label: text below it, or above it if `is_headed`.
    """

    kind: str
    low: float
    high: float
    colour: str = ""
    label: str = ""
    label_colour: str = "muted"
    is_headed: bool = False


@dataclass(frozen=True, kw_only=True)
class Label:
    """Text that begins at a place of the chart."""

    x: float
    y: float
    text: str
    colour: str = "muted"


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart, in pixels.

    Attributes:
        title: one sentence for those who do not see it.
        detail: all of its values in words; empty if a table holds them.
        note: text in the upper right corner.
        below: distance from the horizontal axis to the baseline of its labels.
        names: labels of series, for a legend inside the chart; pages have their own.
    """

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    rules: tuple[Rule, ...] = ()
    fields: tuple[Field, ...] = ()
    labels: tuple[Label, ...] = ()
    detail: str = ""
    note: str = ""
    names: tuple[tuple[str, Series], ...] = ()
    width: float = 520.0
    height: float = 250.0
    left: float = 64.0
    right: float = 16.0
    top: float = 26.0
    bottom: float = 44.0
    below: float = 15.0

    @property
    def inner_width(self) -> float:
        """Pixels between both ends of the horizontal axis."""
        return self.width - self.left - self.right

    @property
    def inner_height(self) -> float:
        """Pixels between both ends of the vertical axis."""
        return self.height - self.top - self.bottom
