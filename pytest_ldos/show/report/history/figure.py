"""Trends as plots: a page that works offline, or an image. Plotly draws them; it comes with the extra ``report``."""

from __future__ import annotations

import html
import math
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from pytest_ldos.base.errors import Unavailable
from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.base.units import format_quantity
from pytest_ldos.judge.baseline.history.commits import CommitPoint
from pytest_ldos.judge.baseline.history.trend import Trend
from pytest_ldos.show.report.history.data import Shown
from pytest_ldos.show.report.history.table import describe, describe_anchors, describe_marks

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_INSTALL: Final = "pip install 'pytest-ldos[report]'"
_WIDTH: Final = 1100
_HEIGHT: Final = 420
_BLUE, _RED, _AMBER, _GREY = "#1f6fb4", "#c0392b", "#b9770e", "#666666"

_CLEAR: Final = "rgba(0, 0, 0, 0)"
_SCRIPT: Final = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>History of performance</title>
<style>
:root {{ color-scheme: light dark; --ink: #1b1b1b; --quiet: #444444; --grid: #dfe4ea; --ground: #ffffff; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e6e9ec; --quiet: #b4bcc4; --grid: #39424b; --ground: #0f1418; }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  color: var(--ink); background: var(--ground); }}
h2 {{ font-size: 1.05rem; margin: 2rem 0 0; }}
p {{ margin: 0; color: var(--quiet); }}
.js-plotly-plot .main-svg :not(.hovertext) > text {{ fill: var(--ink) !important; }}
.js-plotly-plot :is(.gridlayer, .zerolinelayer) path {{ stroke: var(--grid) !important; }}
</style>
</head>
<body>
<h1>History of performance</h1>
{sections}
</body>
</html>
"""


def render_page(shown: Shown) -> Rendered:
    """One page with a plot for each trend; loads nothing.

    Raises:
        Unavailable: Plotly is not installed.
    """
    sections = []
    for number, (trend, points) in enumerate(shown):
        figure = _figure(trend, points)
        figure.update_layout(paper_bgcolor=_CLEAR, plot_bgcolor=_CLEAR)
        plot = figure.to_html(
            full_html=False, include_plotlyjs=number == 0, config={"displaylogo": False, "responsive": True}
        )
        lines = "".join(f"<p>{_safe(line)}</p>" for line in describe_anchors(trend))
        title = _safe(describe(trend.series))
        sections.append(f"<section><h2>{title}</h2>\n{plot}\n{lines}</section>")
    content = "\n".join(sections)
    return Rendered(_PAGE.format(policy=_allow_only_scripts_of(content), sections=content))


def _allow_only_scripts_of(content: str) -> str:
    """A policy by which the page loads nothing, and runs nothing but Plotly and the plots that are in it."""
    digests = (sha256(each.encode()).digest() for each in dict.fromkeys(_SCRIPT.findall(content)))
    sources = " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)
    return f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data: blob:"


def render_image(shown: Shown, kind: str) -> bytes:
    """The plot of one trend as ``svg`` or ``png``.

    Raises:
        Unavailable: Plotly, Kaleido or the Chromium that it draws with is not installed.
    """
    ((trend, points),) = shown
    figure = _figure(trend, points)
    figure.update_layout(title={"text": _safe(describe(trend.series)), "font": {"size": 13}})
    try:
        image: bytes = figure.to_image(format=kind, width=_WIDTH, height=_HEIGHT)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise Unavailable(
            f"no {kind} can be drawn: {reason}", remedy="install kaleido and Chromium, or ask for an .html"
        ) from None
    return image


def _figure(trend: Trend, points: Sequence[CommitPoint]) -> Figure:
    try:
        from plotly import graph_objects  # noqa: PLC0415 - large, and only for plots
    except ImportError:
        raise Unavailable("plots need Plotly, which is not installed", remedy=_INSTALL) from None
    drawn = [point for point in points if math.isfinite(point.location)]
    figure = graph_objects.Figure()
    _add_commits(figure, trend, drawn)
    _add_marks(figure, trend, drawn)
    _add_anchors(figure, trend)
    figure.update_layout(
        template="plotly_white",
        height=_HEIGHT,
        margin={"l": 70, "r": 20, "t": 40, "b": 70},
        legend={"orientation": "h", "y": 1.12},
        yaxis={"title": _safe(f"{trend.series.metric}, {trend.series.unit}")},
        xaxis={
            "title": "commit",
            "tickvals": list(range(0, len(drawn), max(1, len(drawn) // 20))),
            "ticktext": [_safe(point.label[:10]) for point in drawn[:: max(1, len(drawn) // 20)]],
        },
    )
    return figure


def _add_commits(figure: Any, trend: Trend, drawn: Sequence[CommitPoint]) -> None:
    known = [math.isfinite(point.low) and math.isfinite(point.high) for point in drawn]
    figure.add_scatter(
        name="location and 95 % interval",
        mode="lines+markers",
        x=list(range(len(drawn))),
        y=[point.location for point in drawn],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [p.high - p.location if ok else 0 for p, ok in zip(drawn, known, strict=True)],
            "arrayminus": [p.location - p.low if ok else 0 for p, ok in zip(drawn, known, strict=True)],
            "thickness": 1,
            "width": 2,
        },
        text=[_describe_point(trend, point) for point in drawn],
        hovertemplate="%{text}<extra></extra>",
        line={"width": 1, "color": _BLUE},
        marker={"size": 6, "color": _BLUE},
    )


def _add_marks(figure: Any, trend: Trend, drawn: Sequence[CommitPoint]) -> None:
    marks = (
        ("level changes", _RED, "diamond", [number for number, point in enumerate(drawn) if point.change_point]),
        ("crept away", _AMBER, "triangle-up", [number for number, point in enumerate(drawn) if point.creeps]),
    )
    for name, color, symbol, places in marks:
        if places:
            figure.add_scatter(
                name=name,
                mode="markers",
                x=places,
                y=[drawn[place].location for place in places],
                text=[_describe_point(trend, drawn[place]) for place in places],
                hovertemplate="%{text}<extra></extra>",
                marker={"size": 12, "color": color, "symbol": symbol},
            )


def _add_anchors(figure: Any, trend: Trend) -> None:
    anchors = (("pinned anchor" if trend.pinned else "first runs", trend.anchor, "dash"),)
    for name, value, dash in (*anchors, ("rolling anchor", trend.rolling, "dot")):
        if value is not None:
            figure.add_hline(
                y=value,
                line={"dash": dash, "width": 1, "color": _GREY},
                annotation={"text": name, "font": {"size": 11}},
                annotation_position="top left",
            )


def _describe_point(trend: Trend, point: CommitPoint) -> str:
    unit = trend.series.unit
    parts = [
        f"<b>{_safe(point.label)}</b>",
        f"{_safe(format_quantity(point.location, unit))} ({point.count} trials)",
        *(_safe(mark) for mark in describe_marks(trend, point)),
    ]
    return "<br>".join(parts)


def _safe(text: str) -> str:
    """A line of words; also for Plotly, which takes some tags in texts for its own."""
    return html.escape(one_line(text))
