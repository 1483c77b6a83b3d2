"""A breaking point in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Iterator

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
from pytest_ldos.show.report.markdown_parts import Markdown, bullets, escape, heading, join, small, table


def render(result: BreakingResult) -> Rendered:
    """The answer first."""
    return join(_parts(result))


def _parts(result: BreakingResult) -> Iterator[Markdown]:
    yield heading(2, "ldos: breaking point")
    yield escape(answer(result))
    yield bullets(remarks(result))
    yield table(level_titles(result), (level_row(result, each) for each in result.levels))
    yield bullets(mishaps(result))
    if result.cause is not None:
        yield heading(3, "What breaks")
        yield bullets(cause_of(result))
        yield table(STAGE_TITLES, (stage_row(result, each) for each in result.cause.stages))
    yield small(legend(result))
