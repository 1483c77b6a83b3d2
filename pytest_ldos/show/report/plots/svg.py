"""A chart in a page, or as a file: SVG without scripts, style sheets or identifiers, whose text is text.

A mark displays its values when it is pointed at. In a page, colours are variables of its style sheet, so that they
follow the reader's scheme; a file has those of a light ground, which every viewer understands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Final
from xml.etree import ElementTree as ET

import htpy as h
from htpy import Node
from markupsafe import Markup

from pytest_ldos.base.text import one_line
from pytest_ldos.show.report.plots.chart import Chart
from pytest_ldos.show.report.plots.paint import FONT_SIZE, Tags, paint, same_everywhere
from pytest_ldos.show.report.plots.palette import variables

_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_PLACES: Final = ("d", "x", "y", "transform")
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_UPRIGHT: Final = re.compile(r"rotate\(-?0 ")
_FONT: Final = "font"
_WIDE: Final = 600
"""Pixels up to which a chart fits in a narrow window, with text that is still legible."""

_SHARP: Final = 144
"""Dots per inch of an image: two for a pixel."""


def draw(chart: Chart) -> Node:
    """The chart for a page, in a region that scrolls where it is too wide."""
    svg = _svg(chart, variables())
    svg.set("class", "wide plot" if chart.width > _WIDE else "plot")
    markup = Markup(ET.tostring(svg, "unicode"))  # noqa: S704 - escaped by the writer of XML
    return h.div(".scroll", role="region", aria_label=one_line(chart.title), tabindex="0")[markup]


def render_svg(chart: Chart) -> bytes:
    """The chart as a file."""
    svg = _svg(chart, {}, ground="page")
    for name, value in (("xmlns", _NAMESPACE), ("width", f"{chart.width:g}"), ("font-family", "sans-serif")):
        svg.set(name, value)
    return f"{ET.tostring(svg, 'unicode')}\n".encode()


def render_png(chart: Chart) -> bytes:
    """The chart as an image, twice as many pixels wide and high."""
    with same_everywhere():
        image = BytesIO()
        paint(chart, Tags()).savefig(image, format="png", dpi=_SHARP, metadata={"Software": None})
    return image.getvalue()


def _svg(chart: Chart, colours: Mapping[str, str], ground: str = "none") -> ET.Element:
    tags, written = Tags(), BytesIO()
    with same_everywhere():
        paint(chart, tags, ground).savefig(written, format="svg", metadata={"Date": None})
    found = ET.fromstring(written.getvalue())  # noqa: S314 - Matplotlib's own
    shapes = {f"#{each.get('id')}": each for each in found.iter(f"{{{_NAMESPACE}}}path") if each.get("id")}
    size = {"viewBox": f"0 0 {chart.width:g} {chart.height:g}", "font-size": f"{FONT_SIZE}"}
    svg = ET.Element("svg", {**size, "role": "img"})
    ET.SubElement(svg, "title").text = one_line(chart.title)
    if chart.detail:
        ET.SubElement(svg, "desc").text = one_line(chart.detail)
    svg.extend(_Cleaner(tags, shapes, colours).clean(found))
    return svg


class _Cleaner:
    """Keeps what is drawn, in groups that have a class and a style, and gives marks their tips."""

    def __init__(self, tags: Tags, shapes: Mapping[str, ET.Element], colours: Mapping[str, str]) -> None:
        self._tags = tags.found
        self._shapes = shapes
        self._colours = colours

    def clean(self, node: ET.Element) -> Iterator[ET.Element]:
        """Elements in place of a node: none, one or several."""
        kind = node.tag.rpartition("}")[2]
        if kind in {"path", "text"}:
            yield self._copy(kind, node)
        elif kind == "use":
            yield self._mark(node)
        elif node.get("id") in self._tags:
            yield self._group(node)
        elif kind not in {"defs", "metadata"}:
            yield from (each for child in node for each in self.clean(child) if _is_seen(each))

    def _group(self, node: ET.Element) -> ET.Element:
        kind, tips = self._tags[node.get("id", "")]
        drawn = [each for child in node for each in self.clean(child)]
        for each, tip in zip(drawn, tips, strict=False):
            if tip:
                ET.SubElement(each, "title").text = tip
        group = ET.Element("g", {"class": kind})
        _move_common(drawn, group)
        group.extend(drawn)
        return group

    def _copy(self, kind: str, node: ET.Element) -> ET.Element:
        copy = ET.Element(kind, {name: _shorter(node.get(name, "")) for name in _PLACES if node.get(name)})
        if _UPRIGHT.match(copy.get("transform", "")):
            del copy.attrib["transform"]
        copy.attrib.update(self._style(node))
        copy.text = node.text if kind == "text" else None
        return copy

    def _mark(self, use: ET.Element) -> ET.Element:
        """A copy of the shape that is referred to, so that no identifier is needed."""
        shape = self._shapes[use.get(_HREF, "")]
        x, y, path = _shorter(use.get("x", "")), _shorter(use.get("y", "")), _shorter(shape.get("d", ""))
        return ET.Element("path", {"d": path, "transform": f"translate({x} {y})", **self._style(use)})

    def _style(self, node: ET.Element) -> dict[str, str]:
        """Attributes in place of a style."""
        named = (each.partition(": ") for each in node.get("style", "").split("; ") if each)
        return {name: self._colours.get(value, value) for name, _, value in named if not name.startswith(_FONT)}


def _is_seen(drawn: ET.Element) -> bool:
    return drawn.tag == "g" or drawn.get("fill") != "none" or "stroke" in drawn.attrib


def _move_common(drawn: Sequence[ET.Element], group: ET.Element) -> None:
    """Moves what all elements have in common to their group."""
    for name, value in drawn[0].items() if drawn else ():
        if name not in _PLACES and all(each.get(name) == value for each in drawn):
            group.set(name, value)
            for each in drawn:
                del each.attrib[name]


def _shorter(places: str) -> str:
    """Coordinates to a tenth of a pixel."""
    rounded = _NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), places)
    return " ".join(rounded.split())
