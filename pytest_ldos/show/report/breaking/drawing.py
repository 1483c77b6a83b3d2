"""Share of broken trials over the level: counts, their intervals, the curve, and the threshold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from htpy import Node

from pytest_ldos.campaign.bisection import LevelState
from pytest_ldos.campaign.breaking_result import BreakingResult, LevelSummary
from pytest_ldos.campaign.level_scale import Spacing
from pytest_ldos.show.report.breaking.page import level_of, percent
from pytest_ldos.show.report.plots.chart import Axis, Chart, Field, Mark, Rule, Series, Shape
from pytest_ldos.show.report.plots.svg import draw

_FEWEST_LEVELS: Final = 3
_STEPS: Final = 120
_ROOM: Final = 0.03
"""Margin at either end, as a share of the range."""

_SHARES: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_KINDS: Final = {LevelState.HOLDS: ("holds", "good"), LevelState.BREAKS: ("breaks", "bad")}
_OPEN: Final = ("plain", "muted")


def draw_levels(result: BreakingResult) -> Node:
    """A point with its interval for every tested level."""
    levels = _levels(result)
    across = Axis(low=levels.at(-_ROOM), high=levels.at(1 + _ROOM), is_log=levels.is_log, title=result.plan.address)
    return draw(
        Chart(
            title=f"Share of broken trials over {result.plan.address}, with intervals",
            x=across,
            y=Axis(low=0.0, high=1.0, ticks=tuple((share, percent(share)) for share in _SHARES)),
            fields=tuple(_threshold(result)),
            rules=(Rule(kind="boundary", value=result.plan.search.boundary),),
            series=(*_curve(result, levels), *(_point(result, each) for each in result.levels if each.trials)),
            width=600,
            height=300,
            left=52,
            right=24,
            bottom=42,
        )
    )


def _has_shape(result: BreakingResult) -> bool:
    """True if enough levels were visited for a meaningful curve."""
    return len(result.levels) >= _FEWEST_LEVELS


def _levels(result: BreakingResult) -> Axis:
    """The range of levels, rising to the right even if lower levels are harsher."""
    scale = result.plan.search.scale
    return Axis(low=scale.low, high=scale.high, is_log=scale.spacing is Spacing.LOG)


def _threshold(result: BreakingResult) -> Iterator[Field]:
    if result.holds is not None and result.breaks is not None:
        low, high = sorted((result.holds, result.breaks))
        label = "threshold"
        yield Field(kind="floor", low=low, high=high, colour="field", label=label, label_colour="head", is_headed=True)


def _curve(result: BreakingResult, levels: Axis) -> Iterator[Series]:
    if result.curve is None or not _has_shape(result):
        return
    is_falling = result.plan.search.scale.is_falling
    steps = [number / _STEPS for number in range(_STEPS + 1)]
    marks = tuple(Mark(levels.at(1 - step if is_falling else step), result.curve(step)) for step in steps)
    yield Series(kind="curve", marks=marks, colour="head", line="--")


def _point(result: BreakingResult, level: LevelSummary) -> Series:
    """A level; its colour and its words show the decision."""
    kind, colour = _KINDS.get(level.standing, _OPEN)
    tip = f"{level_of(result, level.level)}: {level.broken} of {level.trials} broken, {level.standing.value}"
    mark = Mark(level.level, level.broken / level.trials, tip, level.low, level.high)
    return Series(kind=f"point {kind}", marks=(mark,), colour=colour, shape=Shape.CIRCLE, size=10)
