"""A report of verdicts in every format."""

from __future__ import annotations

from pytest_ldos.base.text import Rendered
from pytest_ldos.show.page.formats import Format, require_format
from pytest_ldos.show.report.document import Document


def render_as(document: Document, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """The document in a format; width and colour matter to a terminal alone.

    Raises:
        Unavailable: see `require_format`.
    """
    require_format(kind)
    if kind is Format.HTML:
        from pytest_ldos.show.report.html import page  # noqa: PLC0415 - its library need not be installed

        return page.render(document)
    if kind is Format.TERMINAL:
        from pytest_ldos.show.report import terminal  # noqa: PLC0415

        return terminal.render(document, width=width, color=color)
    from pytest_ldos.show.report import json_text, markdown  # noqa: PLC0415

    return markdown.render(document) if kind is Format.MARKDOWN else json_text.render(document)
