"""Draws the figures of the explanation, in light and dark: ``python -m docs.figures``."""

from __future__ import annotations

from docs.figures.draw import draw_all

draw_all()
