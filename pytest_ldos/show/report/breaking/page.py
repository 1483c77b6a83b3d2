"""A breaking point as one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.base.text import Rendered
from pytest_ldos.campaign.breaking_result import BreakingResult
from pytest_ldos.show.report.breaking.drawing import draw_levels, has_shape
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
from pytest_ldos.show.report.html.elements import Column, bullet_list, said, table
from pytest_ldos.show.report.html.page import whole_page

_WORDS: Final = frozenset({"level", "result", "stage"})


def render(result: BreakingResult) -> Rendered:
    """The page as text."""
    template = result.template
    setting = [] if template is None else [template.stack, template.recorder, f"commit {template.commit or 'unknown'}"]
    body = h.body[
        h.a(".skip", href="#results")["Skip to the results"],
        h.header[h.h1["ldos breaking point"], bullet_list(setting)],
        h.main(id="results", tabindex="-1")[
            h.section[h.h2["Answer"], h.p[said(answer(result))], bullet_list(remarks(result))],
            h.section[h.h2["Levels"], _levels(result)],
            _cause(result),
            h.section[h.h2["How to read this"], bullet_list([*_drawn(result), *legend(result)])],
        ],
    ]
    return whole_page("ldos: breaking point", body)


def _levels(result: BreakingResult) -> Node:
    rows = [level_row(result, each) for each in result.levels]
    return [
        draw_levels(result) if any(each.trials for each in result.levels) else None,
        _table(f"Levels of {result.plan.address}", level_titles(result), rows),
        bullet_list(mishaps(result)),
    ]


def _cause(result: BreakingResult) -> Node:
    if result.cause is None:
        return None
    rows = [stage_row(result, each) for each in result.cause.stages]
    return h.section[
        h.h2["What breaks"],
        bullet_list(cause_of(result)),
        _table("Stages of a motion", STAGE_TITLES, rows) if rows else None,
    ]


def _table(caption: str, titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Node:
    return table(caption, [Column(title, is_number=title not in _WORDS) for title in titles], rows)


def _drawn(result: BreakingResult) -> Iterable[str]:
    yield (
        "the drawing: a point is the share of broken trials of a level, its line the interval; green holds, red "
        "breaks, grey is undecided"
    )
    if result.curve is not None and has_shape(result):
        yield "the dashed line is the logistic curve through all trials; the shaded field holds the threshold"
