"""Marks for keyboards and screen readers that furo leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_INSTEAD: Final[Mapping[str, str]] = {
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="This page">',
    '<div id="search-results"></div>': '<h1>Search</h1>\n<div id="search-results" aria-live="polite"></div>',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper docutils container">': '<div class="table-wrapper docutils container" tabindex="0">',
}
"""Landmarks get names, and what can scroll is reached by keyboard."""


def make_accessible(page: str) -> str:
    """The page with names of its landmarks, and with a way to what scrolls."""
    for tag, better in _INSTEAD.items():
        page = page.replace(tag, better)
    return page
