"""How likely a trial is to break, over the level: counts, their intervals, the curve, and the threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import htpy as h
from htpy import Node

from pytest_ldos.campaign.bisection import LevelState
from pytest_ldos.campaign.breaking_result import BreakingResult, LevelSummary
from pytest_ldos.campaign.level_scale import Spacing
from pytest_ldos.show.report.breaking.words import level_of, percent
from pytest_ldos.show.report.html.drawing import box, frame, line, place, words
from pytest_ldos.show.report.html.scale import Scale

_WIDTH: Final = 720
_HEIGHT: Final = 330
_LEFT: Final = 52
_RIGHT: Final = 24
_TOP: Final = 26
_BOTTOM: Final = 276
_FEWEST_LEVELS: Final = 3
_STEPS: Final = 120
_RADIUS: Final = 5
_KINDS: Final = {LevelState.HOLDS: "holds", LevelState.BREAKS: "breaks"}
_DECADES: Final = (1, 2, 5)


def draw_levels(result: BreakingResult) -> Node:
    """Every level that was tested, a point with its interval."""
    across = Scale(-0.03, 1.03, _LEFT, _WIDTH - _RIGHT)
    up = Scale(0.0, 1.0, _BOTTOM, _TOP)
    content = [
        _band(result, across),
        list(_axes(result, across, up)),
        _curve(result, across, up),
        list(_points(result, across, up)),
    ]
    label = f"Share of broken trials over {result.plan.address}, with intervals"
    return frame(_WIDTH, _HEIGHT, label=label, content=content)


def _band(result: BreakingResult, across: Scale) -> Node:
    if result.holds is None or result.breaks is None:
        return None
    left, right = sorted(across(_place(result, level)) for level in (result.holds, result.breaks))
    return [
        box(left, _TOP, right - left, _BOTTOM - _TOP, "floor"),
        words((left + right) / 2, _TOP - 8, "threshold", "head", anchor="middle"),
    ]


def _axes(result: BreakingResult, across: Scale, up: Scale) -> Iterator[Node]:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield line(_LEFT, up(share), _WIDTH - _RIGHT, up(share), "grid")
        yield words(_LEFT - 6, up(share) + 4, percent(share), "tick", anchor="end")
    boundary = up(result.plan.search.boundary)
    yield line(_LEFT, boundary, _WIDTH - _RIGHT, boundary, "zero")
    for level in _ticks(result):
        x = across(_place(result, level))
        yield line(x, _BOTTOM, x, _BOTTOM + 5, "grid")
        yield words(x, _BOTTOM + 18, f"{level:g}" if level < 1e6 else f"{level:.0e}", "tick", anchor="middle")
    yield h.text({"text-anchor": "middle"}, x=place((_LEFT + _WIDTH) / 2), y=place(_BOTTOM + 40), class_="tick")[
        result.plan.address
    ]


def _ticks(result: BreakingResult) -> list[float]:
    """Round levels."""
    scale = result.plan.search.scale
    if scale.spacing is Spacing.LINEAR:
        return Scale(scale.low, scale.high, 0, 1).ticks()
    first, last = math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high))
    steps = _DECADES if last - first <= 2 else (1,)
    found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    return [each for each in found if scale.low <= each <= scale.high]


def has_shape(result: BreakingResult) -> bool:
    """Whether enough levels were visited for a curve through them to say something."""
    return len(result.levels) >= _FEWEST_LEVELS


def _curve(result: BreakingResult, across: Scale, up: Scale) -> Node:
    if result.curve is None or not has_shape(result):
        return None
    is_falling = result.plan.search.scale.is_falling
    steps = [number / _STEPS for number in range(_STEPS + 1)]
    points = " L".join(
        f"{place(across(1 - each if is_falling else each))} {place(up(result.curve(each)))}" for each in steps
    )
    return h.path(d=f"M{points}", class_="curve")


def _points(result: BreakingResult, across: Scale, up: Scale) -> Iterator[Node]:
    for level in result.levels:
        if level.trials:
            yield _point(result, level, across(_place(result, level.level)), up)


def _point(result: BreakingResult, level: LevelSummary, x: float, up: Scale) -> Node:
    """What was decided is told by the colour, and by the words when it is pointed at."""
    kind = _KINDS.get(level.standing, "plain")
    tip = f"{level_of(result, level.level)}: {level.broken} of {level.trials} broken, {level.standing.value}"
    middle = up(level.broken / level.trials)
    return [
        line(x, up(level.low), x, up(level.high), "interval plain"),
        h.circle(cx=place(x), cy=place(middle), r=str(_RADIUS), class_=f"point {kind}")[h.title[tip]],
    ]


def _place(result: BreakingResult, level: float) -> float:
    """Levels rise to the right, also where less is harsher."""
    scale = result.plan.search.scale
    return 1 - scale.place(level) if scale.is_falling else scale.place(level)
