"""Marks, axes and frames of drawings. Colours are in the style sheet, so that they follow the reader's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import htpy as h
from htpy import Element, Node

from pytest_ldos.base.text import one_line
from pytest_ldos.show.report.html.scale import Scale

_LONGEST_LABEL: Final = 14
_RADIUS: Final = 3.6
_SIZE: Final = 4.5
_SHAPES: Final = 4

COLOURS: Final = 6
"""That series.css has for the lines of a drawing."""


def place(value: float) -> str:
    """A coordinate."""
    return f"{value:.1f}".removesuffix(".0")


def frame(width: float, height: float, *, label: str, content: Node) -> Node:
    """A drawing that says in one sentence what is in it; its numbers stand in a table beside it."""
    box = {"viewBox": f"0 0 {place(width)} {place(height)}"}
    svg = h.svg(box, role="img", aria_label=one_line(label), class_="plot")[content]
    return h.div(".scroll", role="region", aria_label=one_line(label), tabindex="0")[svg]


def ornament(width: float, height: float, content: Node) -> Node:
    """A drawing that repeats what its row of a table says."""
    box = {"viewBox": f"0 0 {place(width)} {place(height)}"}
    return h.svg(box, width=place(width), height=place(height), aria_hidden="true", class_="inline")[content]


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    return h.line(x1=place(x1), y1=place(y1), x2=place(x2), y2=place(y2), class_=kind)


def box(x: float, y: float, width: float, height: float, kind: str) -> Element:
    return h.rect(x=place(x), y=place(y), width=place(max(0.0, width)), height=place(max(0.0, height)), class_=kind)


def words(x: float, y: float, text: str, kind: str = "", *, anchor: str = "start") -> Element:
    """A label, cut where it is long; whole when pointed at."""
    whole = one_line(text)
    if len(whole) <= _LONGEST_LABEL:
        return h.text({"text-anchor": anchor}, x=place(x), y=place(y), class_=kind or None)[whole]
    cut = f"{whole[: _LONGEST_LABEL - 1]}…"
    return h.text({"text-anchor": anchor}, x=place(x), y=place(y), class_=kind or None)[h.title[whole], cut]


def mark(x: float, y: float, version: str, tip: str) -> Element:
    """A trial: a filled circle of this version, an open diamond of the base."""
    if version == "head":
        return h.circle(cx=place(x), cy=place(y), r=str(_RADIUS), class_="mark head")[h.title[one_line(tip)]]
    size = _RADIUS + 1
    corners = ((x, y - size), (x + size, y), (x, y + size), (x - size, y))
    points = " ".join(f"{place(across)},{place(down)}" for across, down in corners)
    return h.polygon(points=points, class_="mark base")[h.title[one_line(tip)]]


def cross(x: float, y: float, tip: str) -> Element:
    """A trial that failed."""
    size = _RADIUS
    strokes = f"M{place(x - size)} {place(y - size)}l{place(2 * size)} {place(2 * size)}"
    back = f"M{place(x + size)} {place(y - size)}l{place(-2 * size)} {place(2 * size)}"
    return h.path(d=strokes + back, class_="mark failed")[h.title[one_line(tip)]]


def horizontal_axis(scale: Scale, y: float, *, top: float, unit: str) -> Iterator[Node]:
    """Values below a drawing, with lines up to `top`."""
    for value in scale.ticks():
        yield line(scale(value), top, scale(value), y, "grid")
        yield words(scale(value), y + 14, f"{value:.6g}", "tick", anchor="middle")
    yield words(scale.end, y + 28, unit, "tick", anchor="end")


def vertical_axis(scale: Scale, x: float, *, right: float, unit: str) -> Iterator[Node]:
    """Values at the left of a drawing, with lines to `right`."""
    for value in scale.ticks(4):
        yield line(x, scale(value), right, scale(value), "grid")
        yield words(x - 6, scale(value) + 4, f"{value:.6g}", "tick", anchor="end")
    yield words(x - 6, scale.end - 12, unit, "tick", anchor="end")


def outline(x: float, y: float, number: int) -> str:
    """The mark of a line: circles, squares, diamonds, triangles in turn, so that colour is not all there is."""
    size = _SIZE
    corners = (
        None,
        ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        ((0, -1.4), (1.4, 0), (0, 1.4), (-1.4, 0)),
        ((0, -1.3), (1.25, 1), (-1.25, 1)),
    )[number % _SHAPES]
    if corners is None:
        half = f"a{place(size)} {place(size)} 0 1 0 "
        return f"M{place(x - size)} {place(y)}{half}{place(2 * size)} 0{half}{place(-2 * size)} 0z"
    return "M" + "L".join(f"{place(x + size * across)} {place(y + size * down)}" for across, down in corners) + "z"
