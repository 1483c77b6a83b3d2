"""A breaking point in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from pytest_ldos.report.markdown import escape


def render(result: BreakingResult) -> str:
    """The answer first; what other programs said can do nothing."""
    parts = ["## ldos: breaking point", escape(answer(result)), _list(remarks(result))]
    parts.append(_table(level_titles(result), (level_row(result, each) for each in result.levels)))
    parts.append(_list(mishaps(result)))
    if result.cause is not None:
        parts += ["### What breaks", _list(cause_of(result))]
        parts.append(_table(STAGE_TITLES, (stage_row(result, each) for each in result.cause.stages)))
    parts.append("\n".join(f"<sub>{escape(each)}</sub>" for each in legend(result)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escape(each)}" for each in lines)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [[escape(each) for each in row] for row in rows]
    if not cells:
        return ""
    return "\n".join(f"| {' | '.join(line)} |" for line in (titles, ["---"] * len(titles), *cells))
