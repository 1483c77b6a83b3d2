"""A study for a terminal."""

from __future__ import annotations

from typing import Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.instruments.study import Study
from pytest_ldos.show.report.console import line, print_to_text, wrapped
from pytest_ldos.show.report.study.blocks import draw_table
from pytest_ldos.show.report.study.words import failures_of, setting_of, title_of

_NARROWEST: Final = 80


def render(study: Study, *, width: int, color: bool) -> Rendered:
    """What was measured, the tables, and what must be known of them."""
    width = max(width, _NARROWEST)
    lines = wrapped(title_of(study), width, style="bold")
    for each in setting_of(study):
        lines += wrapped(each, width, indent=2, style="dim")
    for table in study.tables:
        if not table.is_detail:
            lines += [line(), *wrapped(table.title, width), *draw_table(table, width)]
    remarks = [*failures_of(study), *study.notes]
    if remarks:
        lines += [line()]
    for each in remarks:
        lines += wrapped(each, width)
    return print_to_text(lines, color=color)
