"""A breaking point for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from pytest_ldos.campaign.breaking_result import BreakingResult
from pytest_ldos.report.breaking.words import (
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
from pytest_ldos.report.console import print_to_text
from pytest_ldos.report.tables import plain_table, wrapped

_NARROWEST = 80


def render(result: BreakingResult, *, width: int, color: bool) -> str:
    """The answer first, then the levels, then what breaks."""
    width = max(width, _NARROWEST)
    parts: list[RenderableType] = [*wrapped(answer(result), width, style="bold")]
    for each in remarks(result):
        parts += wrapped(each, width, indent=2)
    if result.levels:
        rows = [level_row(result, each) for each in result.levels]
        parts += [Text(), plain_table(level_titles(result), rows, left=("result",))]
        parts += [each for text in mishaps(result) for each in wrapped(text, width, indent=2)]
    if result.cause is not None:
        parts += [Text()]
        for each in cause_of(result):
            parts += wrapped(each, width)
        parts += [Text(), plain_table(STAGE_TITLES, [stage_row(result, each) for each in result.cause.stages])]
    parts += [Text()]
    for each in legend(result):
        parts += wrapped(each, width, style="dim")
    return print_to_text(Group(*parts), width=width, color=color)
