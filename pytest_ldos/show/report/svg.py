"""SVG without scripts: charts drawn by Matplotlib, and elements of other drawings.

In a page, colours are variables of its style sheet, so that they follow the reader's scheme. A file has the light
scheme's colours, which every viewer understands.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

import htpy as h
from htpy import Element, Node
from markupsafe import Markup

from pytest_ldos.base.text import one_line
from pytest_ldos.show.report.chart import COLOURS, SHAPES, Chart, Mark, Series, Shape, draw_axes, light, variables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def place(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def ornament(width: float, height: float, content: Node) -> Node:
    """A drawing that repeats the numbers of its table row."""
    box = {"viewBox": f"0 0 {place(width)} {place(height)}"}
    return h.svg(box, width=place(width), height=place(height), aria_hidden="true", class_="inline")[content]


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Element:
    return h.line(x1=place(x1), y1=place(y1), x2=place(x2), y2=place(y2), class_=kind)


def box(
    x: float, y: float, width: float, height: float, kind: str | None = None, *, corner: str | None = None
) -> Element:
    size = {"width": place(max(0.0, width)), "height": place(max(0.0, height))}
    return h.rect({"x": place(x), "y": place(y), **size}, rx=corner, class_=kind)


def words(x: float, y: float, text: str, *, anchor: str | None = None, kind: str | None = None) -> Element:
    """Text on one line; `anchor` is the point of it that is placed at `x`, by default its start."""
    return h.text({"text-anchor": anchor}, x=place(x), y=place(y), class_=kind)[one_line(text)]


_DPI: Final = 72  # dots per inch at which a point is a pixel
FONT_SIZE: Final = 11
_SETTINGS: Final[dict[Any, Any]] = {
    "font.size": FONT_SIZE,
    "lines.solid_capstyle": "butt",
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "pytest-ldos",
    "text.parse_math": False,
}


@dataclass
class Tags:
    """Classes and tooltips of drawn elements, by their identifier in the SVG."""

    found: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def add(self, kind: str, tips: Sequence[str] = ()) -> str:
        name = f"ldos-{len(self.found)}"
        self.found[name] = kind, tuple(map(one_line, tips))
        return name


@contextmanager
def same_everywhere() -> Iterator[None]:
    """Replaces the user's Matplotlib settings by ours, and silences warnings about glyphs missing from its font."""
    import matplotlib as mpl  # noqa: PLC0415 - large, and only for plots

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def paint(chart: Chart, tags: Tags, ground: str = "page") -> Figure:
    """Draws the figure on the colour `ground` or ``none``; call within `same_everywhere`."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - see `same_everywhere`

    figure = Figure(figsize=(chart.width / _DPI, chart.height / _DPI), dpi=_DPI, facecolor=light().get(ground, ground))
    axes = draw_axes(figure, chart)
    for each in chart.fields:
        face = light()[each.colour] if each.colour else "none"
        axes.axvspan(each.low, each.high, facecolor=face, edgecolor="none", zorder=0.1, gid=tags.add(each.kind))
        height, offset = (1.0, 8) if each.is_headed else (0.0, -16)
        at, across = ((each.low + each.high) / 2, height), axes.get_xaxis_transform()
        _write(axes, each.label, at, each.label_colour, xycoords=across, ha="center", offset=offset)
    for rule in chart.rules:
        gid = tags.add(rule.kind)
        axes.axhline(rule.value, color=light()[rule.colour], linewidth=1.5, linestyle=rule.line, gid=gid)
    for series in chart.series:
        _draw_series(axes, series, chart, tags)
    for label in chart.labels:
        _write(axes, label.text, (label.x, label.y), label.colour)
    if chart.names:
        _draw_legend(figure, axes, chart)
    return figure


def _write(
    axes: Axes, text: str, place: tuple[float, float], colour: str, *, offset: float = 0.0, **settings: Any
) -> None:
    """Draws a text whose baseline is `offset` pixels above its position."""
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
    """Bars to the right of their marks, or a line, below intervals and marks; an open interval ends with the axis."""
    marks, up = [mark for mark in series.marks if math.isfinite(mark.x) and math.isfinite(mark.y)], chart.y
    is_bar, ground = series.shape is Shape.BAR, max(0.0, chart.y.low)
    for mark in marks if is_bar else ():
        (bar,) = axes.bar(mark.x, mark.y - ground, series.size, ground, align="edge", color=light()[series.colour])
        bar.set(gid=tags.add(series.kind, [mark.tip]), edgecolor=light()["panel"], clip_on=False)
    if series.line and not is_bar and len(marks) > 1:
        _draw_line(axes, series, [(mark.x, mark.y) for mark in marks], tags.add(f"{series.kind} way"), series.line)
    for mark in marks:
        if mark.low is not None or mark.high is not None:
            low = up.low if mark.low is None else max(up.low, mark.low)
            high = up.high if mark.high is None else min(up.high, mark.high)
            x = mark.x + (series.size / 2 if is_bar else 0.0)
            _draw_line(axes, series, [(x, low), (x, high)], tags.add("whisker"), "-")
    if marks and series.shape not in {Shape.NONE, Shape.BAR}:
        _draw_marks(axes, series, marks, tags)


def _draw_line(axes: Axes, series: Series, points: Sequence[tuple[float, float]], gid: str, line: str) -> None:
    xs, ys = zip(*points, strict=True)
    axes.plot(xs, ys, color=light()[series.colour], linewidth=1.5, linestyle=line, clip_on=False, gid=gid)


def _draw_marks(axes: Axes, series: Series, marks: Sequence[Mark], tags: Tags) -> None:
    colour, ground = light()[series.colour], light()["panel"]
    axes.plot(
        [mark.x for mark in marks],
        [mark.y for mark in marks],
        linestyle="none",
        marker=series.shape.value,
        markersize=series.size,
        markerfacecolor=ground if series.is_hollow else colour,
        markeredgecolor=colour if series.is_hollow or series.shape is Shape.CROSS else ground,
        markeredgewidth=2 if series.shape is Shape.CROSS else 1.5 if series.is_hollow else 1,
        clip_on=False,
        gid=tags.add(series.kind, [mark.tip for mark in marks]),
    )


def _draw_legend(figure: Figure, axes: Axes, chart: Chart) -> None:
    handles = [
        axes.plot(
            [math.nan],
            [math.nan],
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


_NAMESPACE: Final = "http://www.w3.org/2000/svg"
_PLACES: Final = ("d", "x", "y", "transform")
_NUMBER: Final = re.compile(r"-?\d+\.\d+")
_UPRIGHT: Final = re.compile(r"rotate\(-?0 ")
_FONT: Final = "font"
_WIDE: Final = 600  # largest width at which a chart fits a narrow window with legible text [px]
_SHARP: Final = 144  # dots per inch of an image: two per pixel


def draw(chart: Chart) -> Node:
    """The chart for a page, in a region that scrolls if it is too wide."""
    svg = _svg(chart, variables())
    svg.set("class", "wide plot" if chart.width > _WIDE else "plot")
    markup = Markup(ET.tostring(svg, "unicode"))  # noqa: S704 - escaped by the writer of XML
    return h.div(".scroll", role="region", aria_label=one_line(chart.title), tabindex="0")[markup]


def render_svg(chart: Chart) -> bytes:
    svg = _svg(chart, {}, ground="page")
    for name, value in (("xmlns", _NAMESPACE), ("width", f"{chart.width:g}"), ("font-family", "sans-serif")):
        svg.set(name, value)
    return f"{ET.tostring(svg, 'unicode')}\n".encode()


def render_png(chart: Chart) -> bytes:
    """The chart as an image with twice the pixels in each direction."""
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
    """Reduces Matplotlib's SVG to the drawn elements, in groups with class and style, and adds tooltips to marks."""

    def __init__(self, tags: Tags, shapes: Mapping[str, ET.Element], colours: Mapping[str, str]) -> None:
        self._tags = tags.found
        self._shapes = shapes
        self._colours = colours

    def clean(self, node: ET.Element) -> Iterator[ET.Element]:
        """Elements in place of a node: none, one or several."""
        kind = node.tag.rpartition("}")[2]
        if kind in {"path", "text"}:
            yield self._copy(kind, node)
        elif kind == "use":  # becomes a copy of the referenced shape, so that no identifier is needed
            shape = self._shapes[node.get("{http://www.w3.org/1999/xlink}href", "")]
            x, y, path = (_shorter(each) for each in (node.get("x", ""), node.get("y", ""), shape.get("d", "")))
            yield ET.Element("path", {"d": path, "transform": f"translate({x} {y})", **self._style(node)})
        elif node.get("id") in self._tags:
            yield self._group(node)
        elif kind not in {"defs", "metadata"}:
            for each in (each for child in node for each in self.clean(child)):
                if each.tag == "g" or each.get("fill") != "none" or "stroke" in each.attrib:
                    yield each

    def _group(self, node: ET.Element) -> ET.Element:
        kind, tips = self._tags[node.get("id", "")]
        drawn = [each for child in node for each in self.clean(child)]
        for each, tip in zip(drawn, tips, strict=False):
            if tip:
                ET.SubElement(each, "title").text = tip
        group = ET.Element("g", {"class": kind})
        for name, value in drawn[0].items() if drawn else ():
            if name not in _PLACES and all(each.get(name) == value for each in drawn):
                group.set(name, value)  # common to all
                for each in drawn:
                    del each.attrib[name]
        group.extend(drawn)
        return group

    def _copy(self, kind: str, node: ET.Element) -> ET.Element:
        copy = ET.Element(kind, {name: _shorter(node.get(name, "")) for name in _PLACES if node.get(name)})
        if _UPRIGHT.match(copy.get("transform", "")):
            del copy.attrib["transform"]
        copy.attrib.update(self._style(node))
        copy.text = node.text if kind == "text" else None
        return copy

    def _style(self, node: ET.Element) -> dict[str, str]:
        """Attributes in place of a style."""
        named = (each.partition(": ") for each in node.get("style", "").split("; ") if each)
        return {name: self._colours.get(value, value) for name, _, value in named if not name.startswith(_FONT)}


def _shorter(places: str) -> str:
    """Rounds coordinates to a tenth of a pixel."""
    return " ".join(_NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), places).split())


_SIGNS: Final = {Shape.CIRCLE: "●", Shape.SQUARE: "■", Shape.DIAMOND: "◆", Shape.TRIANGLE: "▲"}


def draw_legend(title: str, labels: Sequence[str]) -> Node:
    """The colour and mark of each line, with its label, in the order of colours; nothing for a single line."""
    if len(labels) < 2:
        return None
    entries = [
        h.li[
            h.span(class_=f"s{number % COLOURS}", aria_hidden="true")[_SIGNS[SHAPES[number % len(SHAPES)]]],
            h.bdi[label],
        ]
        for number, label in enumerate(map(one_line, labels))
    ]
    return h.ul(".legend", aria_label=title)[entries]
