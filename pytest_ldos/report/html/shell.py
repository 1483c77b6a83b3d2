"""What every page begins with: its rule that nothing is loaded or run, and its style."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import htpy as h
from htpy import Node
from markupsafe import Markup

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def head(title: str) -> Node:
    """The head of a page with this title."""
    return h.head[
        h.meta(charset="utf-8"),
        h.meta({"http-equiv": "Content-Security-Policy"}, content=_POLICY),
        h.meta(name="viewport", content="width=device-width, initial-scale=1"),
        h.meta(name="color-scheme", content="light dark"),
        h.link(rel="icon", href="data:,"),
        h.title[title],
        h.style[Markup(_style())],  # noqa: S704 - a file of this package
    ]


def _style() -> str:
    return files("pytest_ldos.report.html").joinpath("style.css").read_text("utf-8")
