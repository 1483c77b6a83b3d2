"""SVG elements of drawings that are not charts: intervals in table cells, and flame graphs.

For charts, see `plots.chart`. Colours are in the style sheet, so that they follow the reader's scheme.
"""

from __future__ import annotations

import htpy as h
from htpy import Element, Node


def place(value: float) -> str:
    """A coordinate."""
    return f"{value:.1f}".removesuffix(".0")


def ornament(width: float, height: float, content: Node) -> Node:
    """A drawing that repeats the numbers of its table row."""
    box = {"viewBox": f"0 0 {place(width)} {place(height)}"}
    return h.svg(box, width=place(width), height=place(height), aria_hidden="true", class_="inline")[content]


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    """A straight line."""
    return h.line(x1=place(x1), y1=place(y1), x2=place(x2), y2=place(y2), class_=kind)


def box(x: float, y: float, width: float, height: float, kind: str) -> Element:
    """A rectangle."""
    return h.rect(x=place(x), y=place(y), width=place(max(0.0, width)), height=place(max(0.0, height)), class_=kind)


def words(x: float, y: float, text: str, anchor: str) -> Element:
    """A label of an axis; `anchor` is the point of the text that is placed at `x`."""
    return h.text({"text-anchor": anchor}, x=place(x), y=place(y))[text]
