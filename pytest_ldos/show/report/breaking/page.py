"""Page of a search for a breaking point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pytest_ldos.base.text import Rendered
from pytest_ldos.campaign.breaking_result import BreakingResult
from pytest_ldos.show.page.formats import Format, render_result
from pytest_ldos.show.page.model import Block, Bullets, Drawing, Legend, Page, Section, Tone
from pytest_ldos.show.report.breaking.plain import to_plain
from pytest_ldos.show.report.breaking.words import (
    answer,
    cause_of,
    legend,
    level_table,
    mishaps,
    remarks,
    stage_table,
)

if TYPE_CHECKING:
    from htpy import Node

_MEANINGS: Final = (
    ("●", "share of broken trials of a level; the line is its interval; green holds, red breaks, grey is undecided"),
    ("dashed line", "logistic curve through all trials; drawn where there are enough levels"),
    ("shaded field", "holds the threshold"),
)


def render_breaking_as(result: BreakingResult, kind: Format, *, width: int = 100, color: bool = False) -> Rendered:
    """The result in a format; width and colour matter to a terminal alone.

    Raises:
        Unavailable: see `require_format`.
    """
    return render_result(result, kind, page=compose_page, plain=to_plain, width=width, color=color)


def compose_page(result: BreakingResult) -> Page:
    """The answer first, then the levels, then what breaks."""
    return Page(
        title="ldos: breaking point",
        setting=tuple(_setting(result)),
        answer=answer(result),
        blocks=(
            Bullets(tuple(remarks(result))),
            Section(f"Levels of {result.plan.address}", tuple(_levels(result))),
            Section("What breaks", tuple(_cause(result))),
            Section("How to read this", (Legend(_MEANINGS), Bullets(tuple(legend(result)), Tone.QUIET))),
        ),
    )


def _setting(result: BreakingResult) -> Iterator[str]:
    template = result.template
    if template is not None:
        yield from (template.stack, template.recorder, f"commit {template.commit or 'unknown'}")


def _levels(result: BreakingResult) -> Iterator[Block]:
    if any(each.trials for each in result.levels):
        yield Drawing(lambda: _draw(result))
    yield level_table(result)
    yield Bullets(tuple(mishaps(result)))


def _draw(result: BreakingResult) -> Node:
    from pytest_ldos.show.report.breaking.drawing import draw_levels  # noqa: PLC0415 - its library is optional

    return draw_levels(result)


def _cause(result: BreakingResult) -> Iterator[Block]:
    yield Bullets(tuple(cause_of(result)))
    if result.cause is not None:
        yield stage_table(result, result.cause)
