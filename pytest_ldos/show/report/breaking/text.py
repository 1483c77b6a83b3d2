"""A breaking point for a terminal."""

from __future__ import annotations

from pytest_ldos.base.text import Rendered
from pytest_ldos.campaign.breaking_result import BreakingResult
from pytest_ldos.show.report.breaking.words import (
    STAGE_TITLES,
    answer,
    cause_of,
    legend,
    level_row,
    level_titles,
    mishaps,
    remarks,
    stage_row,
)
from pytest_ldos.show.report.console import line, print_to_text, wrapped
from pytest_ldos.show.report.tables import plain_table

_NARROWEST = 80


def render(result: BreakingResult, *, width: int, color: bool) -> Rendered:
    """The answer first, then the levels, then what breaks."""
    width = max(width, _NARROWEST)
    lines = wrapped(answer(result), width, style="bold")
    for each in remarks(result):
        lines += wrapped(each, width, indent=2)
    if result.levels:
        rows = [level_row(result, each) for each in result.levels]
        lines += [line(), *plain_table(level_titles(result), rows, width=width, left=("result",))]
        lines += [each for text in mishaps(result) for each in wrapped(text, width, indent=2)]
    if result.cause is not None:
        lines += [line()]
        for each in cause_of(result):
            lines += wrapped(each, width)
        rows = [stage_row(result, each) for each in result.cause.stages]
        lines += [line(), *plain_table(STAGE_TITLES, rows, width=width)]
    lines += [line()]
    for each in legend(result):
        lines += wrapped(each, width, style="dim")
    return print_to_text(lines, color=color)
