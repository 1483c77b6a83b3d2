"""Every format a breaking point can be shown in."""

from __future__ import annotations

from pytest_ldos.base.text import Rendered
from pytest_ldos.campaign.breaking_result import BreakingResult
from pytest_ldos.show.report.breaking import markdown, plain, text
from pytest_ldos.show.report.formats import Format, require_format


def render_breaking_as(result: BreakingResult, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """What was found, in a format; width and colour matter to a terminal alone.

    Raises:
        Unavailable: see `require_format`.
    """
    require_format(kind)
    if kind is Format.HTML:
        from pytest_ldos.show.report.breaking import page  # noqa: PLC0415 - its library need not be installed

        return page.render(result)
    if kind is Format.TERMINAL:
        return text.render(result, width=width, color=color)
    return markdown.render(result) if kind is Format.MARKDOWN else plain.render(result)
