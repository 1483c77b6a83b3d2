"""The badge of a history: as an image, and as JSON for shields.io.

Reference: https://shields.io/badges/endpoint-badge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import Rendered, one_line
from pytest_ldos.show.page.data_text import to_json
from pytest_ldos.show.page.model import Badge, Tone
from pytest_ldos.show.report.plots.palette import light

LABEL: Final = "ldos"
SCHEMA_VERSION: Final = 1
_COLOURS: Final[Mapping[Tone, tuple[str, str]]] = {
    Tone.GOOD: ("brightgreen", "good"),
    Tone.BAD: ("red", "bad"),
    Tone.DOUBT: ("yellow", "doubt"),
}
"""Colours of shields.io and of our pages."""

_PLAIN: Final = ("lightgrey", "muted")
_LETTER: Final = 6.6
_PADDING: Final = 6
_HEIGHT: Final = 20


def render_endpoint(badge: Badge) -> Rendered:
    """The badge as JSON for shields.io."""
    colour, _ = _COLOURS.get(badge.tone, _PLAIN)
    return to_json({"schemaVersion": SCHEMA_VERSION, "label": LABEL, "message": badge.text, "color": colour})


def render_badge(badge: Badge) -> Rendered:
    """The badge as SVG."""
    _, colour = _COLOURS.get(badge.tone, _PLAIN)
    left, right = _width(LABEL), _width(badge.text)
    size = {"xmlns": "http://www.w3.org/2000/svg", "width": str(left + right), "height": str(_HEIGHT)}
    title = f"{LABEL}: {badge.text}"
    drawn = h.svg(size, role="img", aria_label=title, font_family="Verdana, DejaVu Sans, sans-serif", font_size="11")[
        h.title[title],
        _part(0, left, LABEL, light()["text"]),
        _part(left, right, badge.text, light()[colour]),
    ]
    return Rendered(f"{one_line(str(drawn))}\n")


def _width(text: str) -> int:
    return round(_LETTER * len(text)) + 2 * _PADDING


def _part(x: int, width: int, text: str, colour: str) -> Node:
    inner = {"x": str(x + _PADDING), "y": "14", "textLength": str(width - 2 * _PADDING), "fill": light()["page"]}
    return [h.rect(x=str(x), width=str(width), height=str(_HEIGHT), fill=colour), h.text(inner)[text]]
