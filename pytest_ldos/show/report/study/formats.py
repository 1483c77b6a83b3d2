"""Every format a study can be shown in."""

from __future__ import annotations

from pytest_ldos.base.text import Rendered
from pytest_ldos.instruments.study import Study
from pytest_ldos.show.report.formats import Format, require_format
from pytest_ldos.show.report.study import markdown, plain, text


def render_study_as(study: Study, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """What was found, in a format; width and colour matter to a terminal alone.

    Raises:
        Unavailable: see `require_format`.
    """
    require_format(kind)
    if kind is Format.HTML:
        from pytest_ldos.show.report.study import page  # noqa: PLC0415 - its library need not be installed

        return page.render(study)
    if kind is Format.TERMINAL:
        return text.render(study, width=width, color=color)
    return markdown.render(study) if kind is Format.MARKDOWN else plain.render(study)
